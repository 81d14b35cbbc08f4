import { deepStrictEqual } from "node:assert/strict";
import { jsonValue } from "../../../data/formats/json_value.ts";

Deno.test("jsonValue() keeps integers exact: a number if it can be, else decimal text", () => {
  const values = [0n, 2n ** 53n - 1n, 2n ** 53n, -(2n ** 63n)];
  deepStrictEqual(values.map(jsonValue), [
    0,
    9007199254740991,
    "9007199254740992",
    "-9223372036854775808",
  ]);
});

Deno.test("jsonValue() has no value that JSON changes, however deep", () => {
  const value = {
    at: new Date("2026-01-02T03:04:05Z"),
    bytes: Uint8Array.of(1, 255),
    longs: BigInt64Array.of(1n, 2n ** 60n),
    nan: [NaN, Infinity, undefined, 0.5],
    text: { "é": "\n" },
  };
  const plain = jsonValue(value);
  deepStrictEqual(plain, {
    at: "2026-01-02T03:04:05.000Z",
    bytes: { base64: "Af8=" },
    longs: [1, "1152921504606846976"],
    nan: [null, null, null, 0.5],
    text: { "é": "\n" },
  });
  deepStrictEqual(JSON.parse(JSON.stringify(plain)), plain);
});
