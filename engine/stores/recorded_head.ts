import { EngineError, LostRecordError } from "../errors.ts";
import type { HeadsFilter, RunHead } from "./store.ts";

/** The texts of a head that are JSON. */
type JsonField = "config" | "graph" | "packages" | "error";
/** The columns of a run that are JSON. */
type JsonColumn = JsonField | "owner" | "requests" | "needs" | "parent";

/** What each column must be. A script's configuration may be anything. */
const IS: Record<JsonColumn, (value: unknown) => boolean> = {
  config: () => true,
  graph: (value) => isObject(value) && typeof value.name === "string",
  packages: isObject,
  error: (value) =>
    isObject(value) && typeof value.code === "string" && typeof value.message === "string",
  owner: (value) => isObject(value) && typeof value.pid === "number",
  requests: Array.isArray,
  needs: isObject,
  parent: (value) =>
    isObject(value) && typeof value.run === "string" && typeof value.round === "number",
};

/**
 * The value of a head's field that is JSON. It may be damaged although the file is intact as a
 * database.
 * @throws {LostRecordError} If it is not JSON, or not what the field has.
 */
export function recordedField<Field extends JsonField>(
  head: Pick<RunHead, "id"> & { readonly [field in Field]: string },
  field: Field,
): unknown {
  return recordedColumn(head, { field, text: head[field] });
}

/** The error that failed a run; null: none did. @throws {LostRecordError} As `recordedField`. */
export function recordedError({ id, error }: Pick<RunHead, "id" | "error">): unknown {
  return error === null ? null : recordedField({ id, error }, "error");
}

/**
 * The value of a run's column that is JSON.
 * @throws {LostRecordError} If it is not, or not what the column has.
 */
export function recordedColumn(
  run: Pick<RunHead, "id">,
  { field, text }: { field: JsonColumn; text: string },
): unknown {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw damagedField(run, { field, text, cause });
  }
  if (IS[field](value)) return value;
  throw damagedField(run, { field, text });
}

/** The heads of rows. One that `read` refuses goes to `onDamaged`; without that, it is thrown. */
export function headsOf<Row>(
  rows: readonly Row[],
  read: (row: Row) => RunHead,
  onDamaged: HeadsFilter["onDamaged"],
): RunHead[] {
  return rows.flatMap((row) => {
    try {
      return [read(row)];
    } catch (error) {
      if (onDamaged === undefined || !(error instanceof EngineError)) throw error;
      onDamaged(error);
      return [];
    }
  });
}

/** The error for a run whose column is not what it must be. */
export function damagedField(
  { id }: Pick<RunHead, "id">,
  { field, text, cause }: { field: JsonColumn; text: string; cause?: unknown },
): LostRecordError {
  return new LostRecordError(
    `Cannot read run '${id}' because its '${field}' in the journal is damaged: ${
      JSON.stringify(text.slice(0, 40))
    }. Fix: restore the journal from a copy`,
    { run: id, field },
    { cause },
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}
