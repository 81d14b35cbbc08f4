import { DataError, type DataPlace } from "../errors.ts";
import { normalise, rowAnswer } from "./normalise.ts";
import type { Row } from "../prompt.ts";
import { type Columns, kind, refuseBroken, RowProblem } from "./row_fields.ts";
import { repaired } from "./repairs.ts";
import type { FoundShape } from "./row_shapes.ts";
import type { SourceConfig } from "../source_config.ts";

/**
 * What every row must have: a prompt, or what is named besides it. `every_turn`: a completion,
 * which of `messages` has every assistant turn and not the last alone. A row that is learnt whole
 * has a completion and an empty prompt. `unpaired`: a completion with a label, or a preference.
 */
export type RowNeeds =
  | "prompt"
  | "completion"
  | "every_turn"
  | "answer"
  | "preference"
  | "unpaired";

/**
 * The row of a source's columns. `unicode`: it is known that all their texts are.
 * @throws {DataError} If it lacks something, or has text that is not Unicode.
 */
export function readRow(
  written: Columns,
  { source, place, needs, found, unicode = false }: {
    source: SourceConfig;
    place: DataPlace;
    needs?: RowNeeds;
    found?: FoundShape;
    unicode?: boolean;
  },
): Row {
  try {
    const columns = repaired(written, source.repairs);
    if (!unicode || columns !== written) refuseBroken(columns);
    const every_turn = needs === "every_turn";
    const row = normalise(columns, source, {
      preference: needs === "preference",
      unpaired: needs === "unpaired",
      every_turn,
      found,
    });
    if (needs === undefined || needs === "preference") return row;
    const isLearnt = needs === "completion" || needs === "every_turn";
    if (row.prompt === "" && !isLearnt) {
      throw new RowProblem(
        source.fields.prompt ?? "prompt",
        "the prompt is empty; only supervised runs learn rows that are a whole text. Name the " +
          "prompt with `fields: { prompt: NAME }`",
      );
    }
    if (needs === "prompt") return row;
    const needed = needs === "answer" ? "answer" : "completion";
    if (row[needed] !== undefined) return row;
    const field = source.fields[needed] ?? needed;
    const fix = needed === "completion"
      ? "add it, or `messages` that end with the assistant's"
      : "add it";
    const answer = needed === "completion" ? undefined : rowAnswer(columns, source.fields.answer);
    throw new RowProblem(
      field,
      `expected ${needed === "completion" ? "text" : "an answer as text"}, got ${
        kind(answer)
      }; ${fix}`,
    );
  } catch (error) {
    if (!(error instanceof RowProblem)) throw error;
    throw new DataError(error.message, { ...place, field: error.field });
  }
}
