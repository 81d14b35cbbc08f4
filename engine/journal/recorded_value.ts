import { LostRecordError } from "../errors.ts";
import type { NewRow } from "../stores/store.ts";

/**
 * The JSON of a journal row's value. It may be damaged although the file is intact as a database.
 * @throws {LostRecordError} If it is not JSON.
 */
export function recordedValue(
  { kind, key, value }: Pick<NewRow, "kind" | "key" | "value">,
): unknown {
  try {
    return JSON.parse(value);
  } catch (cause) {
    throw damagedRow({ kind, key, value }, cause);
  }
}

/**
 * A journal row's value as `read` takes it, such as a schema's `parse`.
 * @throws {LostRecordError} If it is not JSON, or `read` refuses it.
 */
export function recordedAs<T>(
  row: Pick<NewRow, "kind" | "key" | "value">,
  read: (value: unknown) => T,
): T {
  const value = recordedValue(row);
  try {
    return read(value);
  } catch (cause) {
    throw damagedRow(row, cause);
  }
}

/** Whether a row's value can be read: code that only shows or counts skips the others. */
export function isReadable(row: Pick<NewRow, "kind" | "key" | "value">): boolean {
  try {
    recordedValue(row);
    return true;
  } catch (error) {
    if (error instanceof LostRecordError) return false;
    throw error;
  }
}

/**
 * The content of a `result` row.
 * @throws {LostRecordError} If its value is damaged.
 */
export function recordedOutput(key: string, value: string): unknown {
  const row = { kind: "result" as const, key, value };
  const result = recordedValue(row);
  if (typeof result !== "object" || result === null || !("output" in result)) throw damagedRow(row);
  return result.output;
}

/** The error for a row whose value is not what its kind has. */
export function damagedRow(
  { kind, key, value }: Pick<NewRow, "kind" | "key" | "value">,
  cause?: unknown,
): LostRecordError {
  return new LostRecordError(
    `Cannot read the '${kind}' row of '${key}' because its value in the journal is damaged: ${
      shown(value)
    }. Fix: put the ` +
      "journal back from a copy",
    { kind, key },
    { cause },
  );
}

/** The beginning of a damaged value, enough to recognise it. */
function shown(value: unknown): string {
  return JSON.stringify(String(value).slice(0, 40));
}
