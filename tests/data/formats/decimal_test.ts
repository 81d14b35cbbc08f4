import { strictEqual } from "node:assert/strict";
import { decimalOf } from "../../../data/formats/decimal.ts";

Deno.test("decimalOf() is a number if that has the same digits, else decimal text", () => {
  strictEqual(decimalOf(150, 2), 1.5);
  strictEqual(decimalOf(3, 1), 0.3);
  strictEqual(decimalOf(-7n, 3), -0.007);
  strictEqual(decimalOf(0, 2), 0);
  strictEqual(decimalOf(9007199254740993n, 0), "9007199254740993");
  strictEqual(decimalOf(-12345678901234567890123n, 5), "-123456789012345678.90123");
  strictEqual(decimalOf(Uint8Array.from([0xff, 0x38]), 1), -20);
  strictEqual(decimalOf(Uint8Array.from([0x20, 0, 0, 0, 0, 0, 1]), 0), "9007199254740993");
});
