import { InfrastructureError } from "../../engine/mod.ts";

/**
 * Tokens of a row's prompt, and of the whole row.
 * @internal
 */
export type RowLength = { prompt: number; sequence: number };

/**
 * Reads the lengths that a trainer sends for `rows` rows: two little-endian int32 each.
 *
 * @throws {InfrastructureError} If the blob has a different size.
 */
export function rowLengths(blob: Uint8Array, rows: number): RowLength[] {
  if (blob.length !== rows * 8) {
    throw new InfrastructureError(
      `Cannot read the lengths of ${rows} rows because the trainer sent ${blob.length} bytes: ` +
        `${rows * 8} expected`,
      { rows, bytes: blob.length },
    );
  }
  const view = new DataView(blob.buffer, blob.byteOffset, blob.length);
  const at = (place: number) => view.getInt32(4 * place, true);
  return Array.from(
    { length: rows },
    (_, row) => ({ prompt: at(2 * row), sequence: at(2 * row + 1) }),
  );
}
