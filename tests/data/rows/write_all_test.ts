import { deepStrictEqual } from "node:assert/strict";
import { writeAll, writeAllSync } from "../../../data/rows/write_all.ts";

/** A file that takes two bytes at a time. */
function slowFile(): { file: Deno.FsFile; written: number[] } {
  const written: number[] = [];
  const writeSync = (bytes: Uint8Array) => {
    const taken = bytes.subarray(0, 2);
    written.push(...taken);
    return taken.length;
  };
  const write = (bytes: Uint8Array) => Promise.resolve(writeSync(bytes));
  return { file: { write, writeSync } as unknown as Deno.FsFile, written };
}

const BYTES = new Uint8Array([1, 2, 3, 4, 5]);

Deno.test("writeAll() and writeAllSync() write until a file has taken every byte", async () => {
  const [a, b] = [slowFile(), slowFile()];
  await writeAll(a.file, BYTES);
  writeAllSync(b.file, BYTES);
  deepStrictEqual([a.written, b.written], [[...BYTES], [...BYTES]]);
});
