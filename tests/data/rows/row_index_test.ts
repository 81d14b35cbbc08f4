import fc from "fast-check";
import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { readEntries, readIndex, RowIndexWriter } from "../../../data/rows/row_index.ts";
import { rowHome } from "../row_home.ts";

const path = `${await rowHome()}/rows.index`;
const SIZE = 10_000; // More than the writer holds back.
const entryOf = (n: number) => ({ file: n % 3, length: n, start: n * 2 ** 21 });

function written() {
  const writer = new RowIndexWriter(path);
  for (let n = 0; n < SIZE; n++) writer.add(entryOf(n));
  return writer.finish({ key: "k", digest: "d", files: [] });
}

Deno.test("readEntries() gives any entries in the order of their places", async () => {
  written();
  const places = fc.array(fc.nat(SIZE - 1), { maxLength: 50 });
  await fc.assert(
    fc.asyncProperty(places, async (some) => {
      deepStrictEqual(await readEntries(path, some), some.map(entryOf));
    }),
    { numRuns: 40, seed: 3 },
  );
  await rejects(readEntries(path, [SIZE * 2]), /the index ends before row/);
});

Deno.test("readIndex() knows a whole index, a missing one, and one of other rows", async () => {
  const footer = written();
  deepStrictEqual(await readIndex(path, "k"), footer);
  deepStrictEqual([footer.size, footer.digest], [SIZE, "d"]);
  strictEqual(await readIndex(path, "other"), "damaged");
  strictEqual(await readIndex(`${path}.none`, "k"), null);
});

Deno.test("readIndex() finds every torn index and every changed byte", async () => {
  written();
  const whole = await Deno.readFile(path);
  for (const length of [0, 3, 4, 16, whole.length - 1]) {
    await Deno.writeFile(path, whole.subarray(0, length));
    strictEqual(await readIndex(path, "k"), "damaged", `${length} bytes`);
  }
  const places = fc.nat(whole.length - 1);
  await fc.assert(
    fc.asyncProperty(places, async (at) => {
      const bytes = whole.slice();
      bytes[at]! ^= 0x20;
      await Deno.writeFile(path, bytes);
      const read = await readIndex(path, "k");
      // Only what the footer says of files and digest is not proved by the entries.
      const entries = SIZE * 16;
      strictEqual(at < entries ? read : "damaged", "damaged");
    }),
    { numRuns: 60, seed: 5 },
  );
});
