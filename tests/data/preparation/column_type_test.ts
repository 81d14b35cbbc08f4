import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import fc from "fast-check";
import {
  clashText,
  ColumnType,
  TypeClash,
  typeOf,
  unified,
} from "../../../data/preparation/column_type.ts";

Deno.test("typeOf() says what a value of JSON is, with bytes and nested values", () => {
  deepStrictEqual(typeOf({ a: [1, 2.5], b: { base64: "AA==" }, c: null, d: true, e: "x" }), {
    is: "struct",
    fields: {
      a: { is: "list", item: { is: "number" } },
      b: { is: "bytes" },
      c: { is: "null" },
      d: { is: "boolean" },
      e: { is: "text" },
    },
  });
  deepStrictEqual([typeOf(3), typeOf(2 ** 60), typeOf([]), typeOf({})], [
    { is: "integer" },
    { is: "number" },
    { is: "list", item: { is: "null" } },
    { is: "null" },
  ]);
});

Deno.test("unified() has the fields of both, and a number for a whole one", () => {
  deepStrictEqual(unified(typeOf({ a: 1 }), typeOf({ b: "x", a: 0.5 })), {
    is: "struct",
    fields: { a: { is: "number" }, b: { is: "text" } },
  });
  deepStrictEqual(unified(typeOf(null), typeOf("x")), { is: "text" });
});

Deno.test("a column with two types is a clash, which a sentence names with both rows", () => {
  const clash = (() => {
    try {
      return unified(typeOf({ a: ["x"] }), typeOf({ a: [1] }), "column");
    } catch (error) {
      return error as TypeClash;
    }
  })() as TypeClash;
  strictEqual(clash instanceof TypeClash && clash.field, "column.a");
  strictEqual(
    clashText(clash, { file: "a.jsonl", line: 3 }),
    "the column is a whole number here and text in a.jsonl:3; a column has one type: correct the " +
      "row, or do not keep the column",
  );
  throws(() => typeOf(["x", 1], "c"), TypeClash);
});

Deno.test("an object with hundreds of different fields is refused: its keys are data", () => {
  const many = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`k${i}`, i]));
  throws(() => typeOf({ many }), /many has more than 256 different fields/);
});

Deno.test("the order of values does not change a column's type, and a type survives JSON", () => {
  const value = fc.jsonValue({ maxDepth: 2 });
  const types = (values: unknown[]) => {
    try {
      return values.map((one) => typeOf(one)).reduce((a, b) => unified(a, b), { is: "null" });
    } catch (error) {
      if (error instanceof TypeClash) return "clash";
      throw error;
    }
  };
  fc.assert(
    fc.property(fc.array(value, { maxLength: 4 }), (values) => {
      const type = types(values);
      deepStrictEqual(types(values.toReversed()), type);
      if (type !== "clash") {
        deepStrictEqual(ColumnType.parse(JSON.parse(JSON.stringify(type))), type);
      }
    }),
    { seed: 1 },
  );
});
