import { deepStrictEqual, throws } from "node:assert/strict";
import { rowLengths } from "../../../workers/trainer/row_lengths.ts";

Deno.test("rowLengths() reads prompt and sequence of each row, little-endian", () => {
  const bytes = new Uint8Array([1, 0, 0, 0, 2, 1, 0, 0, 0, 0, 0, 0, 255, 255, 0, 0]);
  deepStrictEqual(rowLengths(bytes, 2), [
    { prompt: 1, sequence: 258 },
    { prompt: 0, sequence: 65_535 },
  ]);
});

Deno.test("rowLengths() reads a blob that begins in the middle of its buffer", () => {
  const buffer = new Uint8Array([9, 9, 9, 3, 0, 0, 0, 4, 0, 0, 0]).subarray(3);
  deepStrictEqual(rowLengths(buffer, 1), [{ prompt: 3, sequence: 4 }]);
  deepStrictEqual(rowLengths(new Uint8Array(), 0), []);
});

Deno.test("rowLengths() refuses a blob of the wrong size and names both sizes", () => {
  throws(() => rowLengths(new Uint8Array(15), 2), {
    code: "infrastructure",
    message: "Cannot read the lengths of 2 rows because the trainer sent 15 bytes: 16 expected",
  });
});
