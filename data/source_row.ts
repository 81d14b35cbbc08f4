import { DataError, type DataPlace } from "./errors.ts";
import { normalise } from "./normalise.ts";
import type { Row } from "./prompt.ts";
import { type Columns, kind, RowProblem } from "./row_fields.ts";
import type { FoundShape } from "./row_shapes.ts";
import type { SourceConfig } from "./source_config.ts";

/** What every row must have besides a prompt. */
export type RowNeeds = "completion" | "answer" | "preference";

/**
 * What of a source determines its rows, as digests and indexes have it. `teach` counts where it is
 * read, and not if it has the meaning of runs from before it existed.
 */
export function readingOf(
  { path: _, teach, ...reading }: SourceConfig,
  needs: RowNeeds | undefined,
): object {
  return needs === "completion" && teach !== "last" ? { ...reading, teach } : reading;
}

/** The row of a source's columns. @throws {DataError} If it lacks something. */
export function readRow(
  columns: Columns,
  { source, place, needs, found }: {
    source: SourceConfig;
    place: DataPlace;
    needs?: RowNeeds;
    found?: FoundShape;
  },
): Row {
  try {
    const row = normalise(columns, source, {
      preference: needs === "preference",
      every_turn: needs === "completion" && source.teach === "all",
      found,
    });
    if (needs === undefined || needs === "preference" || row[needs] !== undefined) return row;
    const field = source.fields[needs] ?? needs;
    const fix = needs === "completion"
      ? "add it, or `messages` that end with the assistant's"
      : "add it";
    throw new RowProblem(
      field,
      `expected ${needs === "completion" ? "text" : "an answer"}, got ${kind(undefined)}; ${fix}`,
    );
  } catch (error) {
    if (!(error instanceof RowProblem)) throw error;
    throw new DataError(error.message, { ...place, field: error.field });
  }
}
