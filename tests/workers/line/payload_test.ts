import { deepStrictEqual, ok, rejects, strictEqual, throws } from "node:assert/strict";
import fc from "fast-check";
import { BadDataError, sha256Hex } from "../../../engine/mod.ts";
import { LIMITS } from "../../../workers/line/limits.ts";
import { argumentsOf, outputOf, outputsOf } from "../../../workers/line/payload.ts";

const task = "trainer/g1/t1.1";

function bench() {
  const put: Uint8Array[] = [];
  const artifacts = {
    put: (bytes: Uint8Array) => {
      put.push(bytes);
      return Promise.resolve({ sha256: sha256Hex(bytes), bytes: bytes.length });
    },
  };
  return { put, options: { op: "train", group: "trainer", artifacts } };
}

Deno.test("argumentsOf() puts what is longer than the limit beside the message", async () => {
  const { put, options } = bench();
  const largest = "é".repeat((LIMITS.inline_bytes_max - 2) / 2); // Two bytes each, and quotes.
  deepStrictEqual(await argumentsOf(largest, options), { json: `"${largest}"` });
  deepStrictEqual(put, []);
  const larger = await argumentsOf(`${largest}a`, options);
  ok("artifact" in larger);
  strictEqual(new TextDecoder().decode(put[0]), `"${largest}a"`);
});

Deno.test("argumentsOf() sends null where an operation has no arguments", async () => {
  deepStrictEqual(await argumentsOf(undefined, bench().options), { json: "null" });
});

Deno.test("argumentsOf() names the operation whose arguments are no JSON", async () => {
  const round: Record<string, unknown> = {};
  round.self = round;
  await rejects(
    argumentsOf(round, bench().options),
    (error: Error) =>
      error instanceof BadDataError &&
      error.message.startsWith("Cannot run 'train' on trainer because its arguments cannot be"),
  );
});

Deno.test("outputsOf() restores every output and the operation's own blobs", () => {
  const text = fc.string({ maxLength: 20 });
  const long = text.map((short) => short + "x".repeat(LIMITS.inline_bytes_max));
  const outputs = fc.array(fc.oneof({ weight: 4, arbitrary: text }, long), { maxLength: 4 });
  fc.assert(
    fc.property(outputs, fc.nat(3), (values, count) => {
      const initial = Array.from({ length: count }, (_, i) => new Uint8Array([i]));
      const blobs = [...initial];
      const sent = values.map((value) => outputOf(JSON.stringify(value), blobs));
      deepStrictEqual(outputsOf(sent, { task, blobs }), { outputs: values, blobs: initial });
    }),
    { numRuns: 30 },
  );
});

Deno.test("outputsOf() names the task whose output is no JSON", () => {
  throws(() => outputsOf([{ json: "{" }], { task, blobs: [] }), {
    code: "infrastructure",
    message: /^Cannot use the result of task 'trainer\/g1\/t1\.1' because an output is not JSON: /,
  });
});
