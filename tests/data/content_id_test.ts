import { deepStrictEqual, match, notStrictEqual, strictEqual, throws } from "node:assert/strict";
import canonicalize from "canonicalize";
import fc from "fast-check";
import { contentId } from "../../data/content_id.ts";
import { sha256Hex } from "../../engine/mod.ts";

Deno.test("contentId() ignores the order of keys at every depth", () => {
  const id = contentId({ prompt: "p", meta: [{ a: 1, b: null }] });
  match(id, /^[0-9a-f]{20}$/);
  strictEqual(contentId({ meta: [{ b: null, a: 1 }], prompt: "p" }), id);
  notStrictEqual(contentId({ meta: [{ b: 0, a: 1 }], prompt: "p" }), id);
  notStrictEqual(contentId({ prompt: "p", meta: { 0: { a: 1, b: null } } }), id);
});

Deno.test("contentId() of a row is what datasets of earlier runs were read with", () => {
  strictEqual(contentId({ prompt: "1+1", answer: "2" }), "a5d88c9a691942e2cf92");
});

Deno.test("contentId() hashes canonical JSON (RFC 8785)", () => {
  const text = fc.string({ unit: "grapheme" });
  const values = fc.jsonValue({ stringUnit: "grapheme" });
  fc.assert(fc.property(fc.dictionary(text, values), (row) => {
    const read = JSON.parse(JSON.stringify(row));
    strictEqual(contentId(read), sha256Hex(canonicalize(read)!).slice(0, 20));
  }));
});

Deno.test("contentId() names rows with lone surrogates, which RFC 8785 refuses", () => {
  const row = JSON.parse(String.raw`{"prompt":"\ud800"}`);
  throws(() => canonicalize(row), /Lone surrogate/);
  strictEqual(contentId(row), sha256Hex(String.raw`{"prompt":"\ud800"}`).slice(0, 20));
});

Deno.test("contentId() is the same whatever was hashed before, and of any length", () => {
  const rows = [{ a: "é".repeat(70_000) }, { a: "b" }, {}, { a: "c".repeat(64) }];
  const ids = rows.map((row) => sha256Hex(JSON.stringify(row)).slice(0, 20));
  deepStrictEqual([...rows, ...rows].map(contentId), [...ids, ...ids]);
});
