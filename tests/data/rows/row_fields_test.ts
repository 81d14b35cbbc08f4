import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { fieldsOf, kind, read } from "../../../data/rows/row_fields.ts";

Deno.test("read() reads a nested field, but first a field of that very name", () => {
  strictEqual(read({ a: { b: 1 } }, "a.b"), 1);
  strictEqual(read({ "a.b": 2, a: { b: 1 } }, "a.b"), 2);
  strictEqual(read({ a: null }, "a.b"), undefined);
});

Deno.test("kind() and fieldsOf() say what a row has", () => {
  deepStrictEqual([undefined, null, [], {}, true].map(kind), [
    "nothing",
    "null",
    "a list",
    "an object",
    "boolean true",
  ]);
  strictEqual(fieldsOf({ a: 1, b: 2 }), "'a', 'b'");
  strictEqual(fieldsOf({}), "no field");
});
