import { deepStrictEqual, notStrictEqual, strictEqual } from "node:assert/strict";
import { hashJson } from "../../../engine/canonical.ts";
import { fieldTexts, partsOf } from "../../../engine/executor/task.ts";

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
