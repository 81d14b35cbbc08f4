import type { FileHandle } from "node:fs/promises";

/**
 * The bytes of a file from one place to another.
 * @throws {RangeError} If the file ends before.
 */
export async function bytesAt(
  handle: FileHandle,
  from: number,
  to: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = new Uint8Array(Math.max(0, to - from));
  let at = 0;
  while (at < bytes.length) {
    const { bytesRead } = await handle.read(bytes, at, bytes.length - at, from + at);
    if (bytesRead === 0) throw new RangeError(`the file ends at byte ${from + at}`);
    at += bytesRead;
  }
  return bytes;
}
