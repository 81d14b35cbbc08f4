/**
 * Where a broken row is. `field` is a path inside the row. `line` counts from 1; files without
 * lines count their rows instead, as `row`, from 1.
 */
export type DataPlace = { file: string; line?: number; row?: number; field?: string };

/**
 * A data source that cannot be used: a broken row, a missing file, a duplicate id. Never retried:
 * the same bytes fail the same way. Its fields are those of the engine's errors, which this room
 * may not import.
 */
export class DataError extends Error {
  /** As in the engine's errors. */
  readonly code = "bad_data";
  /** The kind of failure, by which a stage's attempts are counted. */
  readonly cause_kind = "bad_data";
  /** Never: the same bytes fail the same way. */
  readonly retryable = false;
  /** Where it is. */
  readonly facts: DataPlace;

  /** Its message is `file:line field: problem`, or `file row N field: problem`. */
  constructor(problem: string, place: DataPlace) {
    const row = place.row === undefined ? "" : ` row ${place.row}`;
    const line = place.line === undefined ? row : `:${place.line}`;
    super(`${place.file}${line}${place.field ? ` ${place.field}` : ""}: ${problem}`);
    this.name = "DataError";
    this.facts = place;
  }

  /** For programs: JSON output. */
  toJSON(): Record<string, unknown> {
    return { code: this.code, retryable: this.retryable, message: this.message, facts: this.facts };
  }
}
