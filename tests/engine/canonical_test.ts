import { deepStrictEqual, match, notStrictEqual, strictEqual, throws } from "node:assert/strict";
import canonicalize from "canonicalize";
import fc from "fast-check";
import {
  canonicalFields,
  canonicalJson,
  hashJson,
  objectOf,
  sha256Hex,
} from "../../engine/canonical.ts";
import { BadDataError } from "../../engine/errors.ts";

/** Any JSON value without -0, which JSON itself cannot tell from 0. */
const json = () => fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)));

/** Any number that JSON has, of every size and with every exponent. */
const number = () => {
  const double = fc.double({ noNaN: true, noDefaultInfinity: true });
  return fc.oneof(double, fc.integer(), fc.constant(-0));
};

/** Values as they are recorded: all of Unicode in keys and texts, fields that are undefined. */
const recorded = () => {
  const text = fc.string({ unit: "binary" });
  return fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: "medium", withCrossShrink: true },
      fc.oneof(text, number(), fc.boolean(), fc.constant(null)),
      fc.array(tie("value"), { maxLength: 4 }),
      fc.dictionary(text, fc.oneof(tie("value"), fc.constant(undefined)), { maxKeys: 5 }),
    ),
  })).value;
};

/** The same value with every object's properties in another order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(reversed);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).reverse().map(([key, inner]) => [key, reversed(inner)]),
  );
}

Deno.test("canonicalJson() reads back as the value, whatever the order of properties", () => {
  fc.assert(fc.property(json(), (value) => {
    const text = canonicalJson(value);
    deepStrictEqual(JSON.parse(text), value);
    strictEqual(canonicalJson(reversed(value)), text);
    strictEqual(canonicalJson(JSON.parse(text)), text);
  }));
});

Deno.test("canonicalJson() of two values is equal exactly if the values are", () => {
  fc.assert(fc.property(json(), json(), (a, b) => {
    let equal = true;
    try {
      deepStrictEqual(a, b);
    } catch {
      equal = false;
    }
    strictEqual(canonicalJson(a) === canonicalJson(b), equal);
    strictEqual(hashJson(a) === hashJson(b), equal);
  }));
});

Deno.test("canonicalJson() writes what a library of RFC 8785 writes", () => {
  const same = (value: unknown) => strictEqual(canonicalJson(value), canonicalize(value));
  fc.assert(fc.property(recorded(), same), { numRuns: 1000 });
});

Deno.test("canonicalJson() writes half a surrogate pair, which RFC 8785 refuses", () => {
  const row = { "\ud800": "\udfff a" };
  strictEqual(canonicalJson(row), '{"\\ud800":"\\udfff a"}');
  deepStrictEqual(JSON.parse(canonicalJson(row)), row);
  throws(() => canonicalize(row), /Lone surrogate/);
});

Deno.test("canonicalJson() sorts keys by UTF-16 unit, and numbers are JSON's", () => {
  strictEqual(
    canonicalJson({
      b: [1e-7, -0, 1e21, "é\n"],
      a: { z: null, "10": 1, "9": true },
      absent: undefined,
    }),
    '{"a":{"10":1,"9":true,"z":null},"b":[1e-7,0,1e+21,"é\\n"]}',
  );
  const special = '{"b":{"10":{"a":1,"b":2},"9":3},"c":{"__proto__":{"a":1,"b":2}}}';
  strictEqual(canonicalJson(reversed(JSON.parse(special))), special);
});

Deno.test("canonicalJson() refuses what JSON would change, and names the path", () => {
  const cycle: Record<string, unknown> = {};
  cycle.self = cycle;
  const holes: unknown[] = [1];
  holes[2] = 3;
  const cases: [unknown, RegExp][] = [
    [{ a: [{ b: NaN }] }, /'a\.0\.b' because it is the number NaN/],
    [{ a: -Infinity }, /the number -Infinity/],
    [undefined, /the value because it is undefined/],
    [[undefined], /'0' because it is undefined/],
    [holes, /'1' because it is undefined/],
    [{ f: () => 1 }, /'f' because it is a function/],
    [{ n: 1n }, /'n' because it is a bigint/],
    [{ when: new Date(0) }, /'when' because it is an instance of Date/],
    [{ ids: new Int32Array(2) }, /'ids' because it is an instance of Int32Array/],
    [new Map(), /an instance of Map/],
    [cycle, /nested deeper than 200 levels/],
  ];
  for (const [value, message] of cases) {
    throws(() => canonicalJson(value), (error: BadDataError) => {
      strictEqual(error.code, "bad_data");
      match(error.message, message);
      return true;
    });
  }
});

Deno.test("canonicalFields() of an object are the pieces of its canonical JSON", () => {
  fc.assert(fc.property(recorded(), (value) => {
    const fields = canonicalFields(value);
    strictEqual(
      fields === null,
      typeof value !== "object" || value === null || Array.isArray(value),
    );
    if (fields === null) return;
    strictEqual(objectOf(fields).join(""), canonicalJson(value));
    for (const [name, text] of fields) {
      strictEqual(text, canonicalJson((value as Record<string, unknown>)[name]));
    }
  }));
});

Deno.test("sha256Hex() of a long text is that of its bytes, wherever a pair of surrogates lies", () => {
  const bytes = (text: string) => new TextEncoder().encode(text);
  for (const length of [65_534, 65_535, 65_536, 65_537, 131_071, 131_072]) {
    for (const odd of ["\u{1F600}", "\u{1F600}\u{1F600}", "\uD83D", "\uDE00\uD83D", "\u20AC", ""]) {
      const text = "x".repeat(length) + odd + "y".repeat(10) + odd;
      strictEqual(sha256Hex(text), sha256Hex(bytes(text)), `${length} ${JSON.stringify(odd)}`);
      strictEqual(sha256Hex([text, "-", text]), sha256Hex(bytes(`${text}-${text}`)));
    }
  }
});

Deno.test("sha256Hex() equals the published test vectors, for text and bytes", () => {
  // FIPS 180-2, appendix B.1.
  const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  strictEqual(sha256Hex("abc"), abc);
  strictEqual(sha256Hex(new Uint8Array([0x61, 0x62, 0x63])), abc);
  notStrictEqual(hashJson({ a: 1 }), hashJson({ a: "1" }));
});
