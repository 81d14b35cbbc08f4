import { createHash } from "node:crypto";
import { DataError } from "./errors.ts";
import { readJsonLines } from "./json_lines.ts";
import { normalise } from "./normalise.ts";
import type { Row } from "./prompt.ts";
import { kind, RowProblem } from "./row_fields.ts";
import { SourceConfig, type SourceInput } from "./source_config.ts";

/**
 * Rows that are read by place, and a digest of their content. Files and generated tasks look the
 * same.
 */
export type RowTable = {
  readonly size: number;
  row(place: number): Row;
  /** sha256 hex: changes when a file, or how it is read, changes. */
  readonly digest: string;
};

/** How a source is read. */
export type ReadOptions = {
  /**
   * What every row must have besides a prompt; `preference`: two completions, one of them better.
   */
  needs?: "completion" | "answer" | "preference";
  /** Sees the bytes of every line read, in order. */
  onLine?: (bytes: Uint8Array) => void;
};

/**
 * Streams the normalised rows of one file with their line numbers. @throws {DataError} At the first
 * broken row.
 */
async function* readRows(
  input: SourceInput,
  options: ReadOptions = {},
): AsyncGenerator<{ line: number; row: Row }> {
  const source = SourceConfig.parse(input);
  let count = 0;
  for await (const { line, value } of readJsonLines(source.path, options.onLine)) {
    yield { line, row: checked(value, { source, line, needs: options.needs }) };
    count++;
    if (count === source.limit) return;
  }
}

function checked(
  value: Record<string, unknown>,
  { source, line, needs }: { source: SourceConfig; line: number; needs: ReadOptions["needs"] },
): Row {
  try {
    const row = normalise(value, source, { preference: needs === "preference" });
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
    if (error instanceof RowProblem) {
      throw new DataError(error.message, { file: source.path, line, field: error.field });
    }
    throw error;
  }
}

/**
 * Reads sources into one table, in the order given. Ids are unique over all of them: resume, the
 * ledger and comparison name rows by id.
 * @throws {DataError} At the first broken row, duplicate id, or if no row is left.
 */
export async function loadRows(
  sources: SourceInput[],
  options: Pick<ReadOptions, "needs"> = {},
): Promise<RowTable> {
  const rows: Row[] = [];
  const seen = new Map<string, { file: string; line: number }>();
  const digest = createHash("sha256");
  for (const input of sources) {
    const source = SourceConfig.parse(input);
    const { path: file, ...reading } = source;
    const onLine = (bytes: Uint8Array) => void digest.update(bytes).update("\n");
    digest.update(JSON.stringify(reading));
    for await (const { line, row } of readRows(source, { ...options, onLine })) {
      const first = seen.get(row.row_id);
      if (first === undefined) {
        seen.set(row.row_id, { file, line });
        rows.push(row);
      } else if (source.duplicates === "refuse") {
        throw duplicate(row.row_id, { first, again: { file, line } });
      }
    }
  }
  const file = sources.map((source) => source.path).join(", ");
  if (rows.length === 0) {
    throw new DataError("there is no row in it; give a file with at least one", { file });
  }
  return tableOf(rows, digest.digest("hex"));
}

/** A table of rows in memory. */
export function tableOf(rows: readonly Row[], digest: string): RowTable {
  const row = (place: number) => {
    const found = rows[place];
    if (found === undefined) {
      throw new RangeError(`Cannot read row ${place} because the table has ${rows.length} rows`);
    }
    return found;
  };
  return { size: rows.length, row, digest };
}

/**
 * A table without the rows at `places`, which are in order. Its digest is that of the whole, which
 * determines what is left out.
 */
export function withoutRows(table: RowTable, places: readonly number[]): RowTable {
  const left = new Set(places);
  const kept = Uint32Array.from(
    Array.from({ length: table.size }, (_, place) => place).filter((at) => !left.has(at)),
  );
  const row = (place: number) => {
    const at = kept[place];
    if (at === undefined) {
      throw new RangeError(`Cannot read row ${place} because the table has ${kept.length} rows`);
    }
    return table.row(at);
  };
  return { size: kept.length, row, digest: table.digest };
}

type Place = { file: string; line: number };

function duplicate(id: string, { first, again }: { first: Place; again: Place }): DataError {
  const where = first.file === again.file ? `line ${first.line}` : `${first.file}:${first.line}`;
  const fix = first.file === again.file
    ? "remove one, or set `duplicates: skip`"
    : "give each file a `name`, which is put before its ids, or set `duplicates: skip`";
  return new DataError(`the row id '${id}' is that of ${where} already; ${fix}`, again);
}
