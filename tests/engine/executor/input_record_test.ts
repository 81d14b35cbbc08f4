import { deepStrictEqual, notStrictEqual, strictEqual, throws } from "node:assert/strict";
import { canonicalJson, hashJson, sha256Hex } from "../../../engine/canonical.ts";
import {
  fieldTexts,
  inputHash,
  inputRecord,
  partsOf,
} from "../../../engine/executor/input_record.ts";

Deno.test("partsOf() hashes each field by its value, whatever the order of its keys", () => {
  const parts = partsOf({ a: { x: 1, y: 2 }, b: [1] });
  deepStrictEqual(Object.keys(parts), ["a", "b"]);
  strictEqual(parts.a, partsOf({ a: { y: 2, x: 1 } }).a);
  notStrictEqual(parts.b, partsOf({ b: [2] }).b);
  deepStrictEqual(partsOf({ a: undefined }), {});
});

Deno.test("fieldTexts() shows each field as canonical JSON, and no field that is undefined", () => {
  deepStrictEqual(fieldTexts({ a: { y: 2, x: 1 }, b: null, c: undefined }), {
    a: '{"x":1,"y":2}',
    b: "null",
  });
});

Deno.test("an input without fields is one part, named input", () => {
  for (const input of [7, "text", null]) {
    deepStrictEqual(partsOf(input), { input: hashJson(input) });
    deepStrictEqual(fieldTexts(input), { input: JSON.stringify(input) });
  }
});

Deno.test("a list has a part for each of its items", () => {
  deepStrictEqual(partsOf([7, { a: 1 }]), { 0: hashJson(7), 1: hashJson({ a: 1 }) });
  deepStrictEqual(fieldTexts([7, null]), { 0: "7", 1: "null" });
  const long = ["x".repeat(5000), 1];
  const json = `"parts":${canonicalJson(partsOf(long))}`;
  strictEqual(inputRecord({ name: "train", version: 3 }, long).json, json);
});

Deno.test("an input has one hash, whether its record has it whole or as a hash per field", () => {
  const stage = { name: "train", version: 3 };
  const hash = (input: unknown) => sha256Hex(`train@3\n${canonicalJson(input)}`);
  for (const input of [{ b: 1, a: undefined, 10: [2] }, {}, [1, 2], 7, null]) {
    const json = `"input":${canonicalJson(input)}`;
    deepStrictEqual(inputRecord(stage, input), { hash: hash(input), json });
    strictEqual(inputHash(stage, input), hash(input));
  }
  const text = "\u{1F600}".repeat(3000);
  const large = { text, 2: { y: 1, x: [null] }, none: undefined };
  const parts = { 2: hashJson({ x: [null], y: 1 }), text: hashJson(text) };
  const json = `"parts":${JSON.stringify(parts)}`;
  deepStrictEqual(inputRecord(stage, large), { hash: hash(large), json });
  strictEqual(inputHash(stage, large), hash(large));
});

Deno.test("an input that cannot be recorded is refused with the path of the field", () => {
  const stage = { name: "train", version: 3 };
  for (
    const [input, path] of [[{ a: { b: [1, NaN] } }, "a.b.1"], [{ a: new Date() }, "a"]] as const
  ) {
    throws(() => inputRecord(stage, input), { code: "bad_data", facts: { path } });
  }
  throws(() => inputRecord(stage, new Date()), /Cannot record the value because it is an instance/);
});
