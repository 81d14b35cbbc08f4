import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import fc from "fast-check";
import {
  digitsOf,
  isAtRisk,
  parseExactly,
  spelled,
  spelledAs,
  writeExactly,
} from "../../data/exact_json.ts";

Deno.test("parseExactly() keeps the digits of integers that no double has, at any depth", () => {
  const text = '{"a":9007199254740993,"b":[-10000000000000000001,9007199254740991],"c":1e400}';
  deepStrictEqual(parseExactly(text), {
    a: "9007199254740993",
    b: ["-10000000000000000001", 9007199254740991],
    c: "1e400",
  });
  for (const digits of ["9007199254740993", "-9007199254740993"]) {
    // Nothing else is at risk, wherever the number is.
    for (const json of [digits, `[${digits}]`, `[0,${digits}]`, `{"id":${digits}}`]) {
      deepStrictEqual(parseExactly(json), JSON.parse(json.replace(digits, `"${digits}"`)));
    }
    deepStrictEqual(parseExactly(`{"id": ${digits}}`), { id: digits });
  }
});

Deno.test("parseExactly() is JSON.parse() for all other values", () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      // The digits of such integers are those of their double, written without an exponent.
      const known = JSON.parse(
        text,
        (_, value) =>
          Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) < 1e21
            ? String(value)
            : value,
      );
      deepStrictEqual(parseExactly(text), known);
    }),
    { seed: 1 },
  );
  const same = '{"x":0.30000000000000004,"y":1e21,"z":"12345678901234567890","w":1.5e+300}';
  deepStrictEqual(parseExactly(same), JSON.parse(same));
  throws(() => parseExactly('{"a":12345678901234567890'), SyntaxError);
});

Deno.test("isAtRisk() finds every number that JSON.parse() may change, and no text like one", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 40 }), fc.nat({ max: 24 }), (text, count) => {
      const digits = "1234567890123456789012345".slice(0, count);
      const json = JSON.stringify({ text: text.replaceAll(/\d/g, ""), n: "#" })
        .replace('"#"', digits || "0");
      strictEqual(isAtRisk(json), count >= 16);
    }),
    { seed: 2 },
  );
  for (const json of ["1.0", "[1.50]", '{"a": 1e3}', " -1E5", "[0,1e400]"]) {
    strictEqual(isAtRisk(json), true);
  }
  for (const json of ['{"a":"costs 2.50 today"}', '{"a":"2e3"}', '{"a":0.5,"b":[1.25]}']) {
    strictEqual(isAtRisk(json), false);
  }
});

Deno.test("parseExactly() keeps the digits of decimals that no double has, as their text", () => {
  for (
    const digits of [
      "3.14159265358979323846",
      "8.000000000000001",
      "123456789.123456789",
      "1e-400",
      "1.23456789012345678e5",
      "-0.1234567890123456789",
    ]
  ) {
    for (const json of [digits, `[${digits}]`, `[0,${digits}]`, `{"a": ${digits}}`]) {
      deepStrictEqual(parseExactly(json), JSON.parse(json.replace(digits, `"${digits}"`)), json);
    }
  }
  fc.assert(
    fc.property(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.nat({ max: 99 }),
      (value, n) => {
        // What a program writes of a double, with as many digits as it likes, is a number.
        const texts = [String(value), value.toPrecision(17 + n % 84), value.toPrecision(1 + n)];
        texts.push(
          ...texts.filter((text) => text.includes(".") && !/e/.test(text)).map((text) =>
            `${text}000`
          ),
        );
        for (const text of texts) {
          const number = Number(text);
          if (Number.isInteger(number) || !Number.isFinite(number)) continue;
          deepStrictEqual(parseExactly(`[${text}]`), [number], text);
        }
      },
    ),
    { seed: 3 },
  );
});

Deno.test("parseExactly() has a number for what programs write that round ties down", () => {
  // Shortest forms of Python and JavaScript, and the digits of C's %.17g and of SQL's numeric.
  for (
    const text of [
      "1700000000123456.2",
      "145494564187514.62",
      "0.10000000000000001",
      "0.100000000000000000",
      "19.990000000000000000",
      "0.12",
      "2.50000000000000000000",
    ]
  ) deepStrictEqual(parseExactly(`[${text}]`), [Number(text)], text);
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), (bits) => {
      const [value] = new Float64Array(new BigUint64Array([bits]).buffer);
      if (!Number.isFinite(value) || Number.isInteger(value)) return;
      deepStrictEqual(parseExactly(`{"a":${value}}`), { a: value });
    }),
    { seed: 5, numRuns: 5000 },
  );
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 4e8 }), (quarters) => {
      const value = 1.7e15 + quarters / 4; // Microseconds: every second one is a tie.
      deepStrictEqual(parseExactly(`{"a":${value}}`), { a: value });
    }),
    { seed: 6, numRuns: 1000 },
  );
});

Deno.test("spelled() has the digits of the text, without an exponent, while the number is there", () => {
  const value = parseExactly('{"a":1.10,"b":1e3,"c":[2.0,7],"d":-1.50}') as Record<string, number>;
  const long = parseExactly('{"a":0.10000000000000001}') as Record<string, number>;
  strictEqual(spelled(long, "a", 0.1), "0.10000000000000001");
  const list = value.c as unknown as number[];
  deepStrictEqual(
    [
      spelled(value, "a", 1.1),
      spelled(value, "b", 1000),
      spelled(list, "0", 2),
      spelled(list, "1", 7),
    ],
    ["1.10", "1000", "2.0", "7"],
  );
  strictEqual(spelled(spelledAs(value, { ...value, a: 3 }), "a", 3), "3");
  strictEqual(spelled({ a: 1.1 }, "a", 1.1), "1.1");
});

Deno.test("digitsOf() writes no exponent", () => {
  strictEqual(digitsOf(1e21), "1000000000000000000000");
  strictEqual(digitsOf(1e-7), "0.0000001");
  strictEqual(digitsOf(-1.25e-9), "-0.00000000125");
  strictEqual(digitsOf(0.1), "0.1");
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      const text = digitsOf(value);
      strictEqual(/e/.test(text), false);
      strictEqual(Number(text) - value, 0);
    }),
    { seed: 1 },
  );
});

Deno.test("writeExactly() writes numbers as parseExactly() has read them", () => {
  const text = '{"a":1.0,"b":[2,3.50,{"c":-1e3}],"d":0.1,"e":"1.0","f":-0.0}';
  const value = parseExactly(text);
  deepStrictEqual(value, { a: 1, b: [2, 3.5, { c: -1000 }], d: 0.1, e: "1.0", f: -0 });
  strictEqual(writeExactly(value), text);
  const { a, b } = value as { a: number; b: unknown[] };
  strictEqual(writeExactly(spelledAs(value as object, { a })), '{"a":1.0}');
  strictEqual(writeExactly(b), '[2,3.50,{"c":-1e3}]');
  strictEqual(writeExactly({ a: 1, b: "x" }), '{"a":1,"b":"x"}');
});

Deno.test("writeExactly() of what parseExactly() has read is the same JSON", () => {
  fc.assert(
    fc.property(fc.json(), (text) => {
      deepStrictEqual(JSON.parse(writeExactly(parseExactly(text))), parseExactly(text));
    }),
  );
});
