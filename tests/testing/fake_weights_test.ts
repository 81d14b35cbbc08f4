import { deepStrictEqual, notStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { digestOf, fraction, probe, read, writeFakeModel } from "../../testing/fake_weights.ts";
import { sha256Hex } from "../../engine/mod.ts";

Deno.test("writeFakeModel() writes one file with the digests that it returns", async () => {
  const dir = await Deno.makeTempDir({ prefix: "fake_weights_test_" });
  const { digest, file } = await writeFakeModel(`${dir}/a/model`, 0.1);
  deepStrictEqual([...Deno.readDirSync(`${dir}/a/model`)].map(({ name }) => name), [file.path]);
  const bytes = await Deno.readFile(`${dir}/a/model/${file.path}`);
  deepStrictEqual(file, { path: file.path, sha256: sha256Hex(bytes), bytes: bytes.length });
  strictEqual(digest, digestOf(0.1));
  await Deno.remove(dir, { recursive: true });
});

Deno.test("read() reads every bit of the number that was written", async () => {
  const dir = await Deno.makeTempDir({ prefix: "fake_weights_test_" });
  await fc.assert(
    fc.asyncProperty(fc.double({ noNaN: true, noDefaultInfinity: true }), async (weights) => {
      await writeFakeModel(dir, weights);
      ok(await read(dir) === weights);
    }),
    { numRuns: 30 },
  );
  await Deno.remove(dir, { recursive: true });
});

Deno.test("fraction() is in [0, 1), the same for equal parts, and depends on their order", () => {
  const part = fc.oneof(fc.string(), fc.double({ noNaN: true }));
  fc.assert(fc.property(fc.array(part), (parts) => {
    const value = fraction(...parts);
    ok(value >= 0 && value < 1);
    strictEqual(fraction(...parts), value);
  }));
  notStrictEqual(fraction(1, 2), fraction(2, 1));
  notStrictEqual(fraction("1"), fraction(1));
});

Deno.test("probe() tells weights apart that differ in the last bit", () => {
  notStrictEqual(probe(1).sha256, probe(1 + Number.EPSILON).sha256);
  notStrictEqual(probe(1).logp[0], probe(1 + Number.EPSILON).logp[0]);
});
