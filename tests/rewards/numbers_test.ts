import { strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { lastNumber, numberAlone, spellNumber } from "../../rewards/numbers.ts";

Deno.test("spellNumber() gives a number one spelling", () => {
  const cases: [text: string, number: string | null][] = [
    ["1,042", "1042"],
    ["$1,042.50", "1042.5"],
    ["-$3", "-3"],
    ["$-3", "-3"],
    ["\u22123", "-3"],
    ["007", "7"],
    ["0.10", "0.1"],
    [".5", "0.5"],
    ["12.", "12"],
    ["-0.0", "0"],
    ["--3", null],
    ["1,04", null],
    ["1e3", null],
    ["", null],
    [".", null],
  ];
  for (const [text, number] of cases) strictEqual(spellNumber(text), number, text);
});

Deno.test("spellNumber() leaves its own spelling as it is, however many digits it has", () => {
  fc.assert(fc.property(fc.bigInt(), (n) => {
    strictEqual(spellNumber(String(n)), String(n));
    strictEqual(spellNumber(n.toLocaleString("en-US")), String(n));
  }));
});

Deno.test("numberAlone() reads the only number up to the end of its line", () => {
  strictEqual(numberAlone("#### 42 apples", { from: 4 }), "42");
  strictEqual(numberAlone("#### 42\n43", { from: 4 }), "42");
  strictEqual(numberAlone("#### 42 or 43", { from: 4 }), null);
  strictEqual(numberAlone("#### 4\u00bd", { from: 4 }), null);
  strictEqual(numberAlone("#### none", { from: 4 }), undefined);
  strictEqual(numberAlone("\\boxed{42} of 50", { from: 7, closer: "}" }), "42");
});

Deno.test("lastNumber() is null where the last digits are part of something else", () => {
  strictEqual(lastNumber("first 3, then 1,042."), "1042");
  strictEqual(lastNumber("it is -7 degrees"), "-7");
  strictEqual(lastNumber("so,12"), "12");
  for (const text of ["no digits", "1/2", "12:30", "1e3", "12-15", "1 234", "2\u00b2"]) {
    strictEqual(lastNumber(text), null, text);
  }
});

Deno.test("lastNumber() finds a number that words stand around", () => {
  fc.assert(fc.property(fc.nat(), (n) => {
    strictEqual(lastNumber(`There were 5 of them. The answer is ${n} in all.`), String(n));
  }));
});
