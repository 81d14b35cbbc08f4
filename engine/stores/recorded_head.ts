import { LostRecordError } from "../errors.ts";
import type { RunHead } from "./store.ts";

/** The texts of a head that are JSON. */
type JsonField = "config" | "graph" | "packages" | "error";

/**
 * The value of a head's field that is JSON. It may be damaged although the file is intact as a
 * database.
 * @throws {LostRecordError} If it is not JSON.
 */
export function recordedField<Field extends JsonField>(
  head: Pick<RunHead, "id"> & { readonly [field in Field]: string },
  field: Field,
): unknown {
  return recordedColumn(head, { field, text: head[field] });
}

/**
 * The value of a run's column that is JSON.
 * @throws {LostRecordError} If it is not.
 */
export function recordedColumn(
  { id }: Pick<RunHead, "id">,
  { field, text }: { field: keyof RunHead; text: string },
): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new LostRecordError(
      `Cannot read run '${id}' because its '${field}' in the journal is damaged: ${
        JSON.stringify(text.slice(0, 40))
      }. Fix: restore the journal from a copy`,
      { run: id, field },
      { cause },
    );
  }
}

/** The error that failed a run; null: none did. @throws {LostRecordError} If it is not JSON. */
export function recordedError({ id, error }: Pick<RunHead, "id" | "error">): unknown {
  return error === null ? null : recordedField({ id, error }, "error");
}
