import { match, notStrictEqual, strictEqual } from "node:assert/strict";
import { contentId } from "../../data/content_id.ts";

Deno.test("contentId() is the same whatever the order of keys at any depth, and another for another content", () => {
  const id = contentId({ prompt: "p", meta: [{ a: 1, b: null }] });
  match(id, /^[0-9a-f]{20}$/);
  strictEqual(contentId({ meta: [{ b: null, a: 1 }], prompt: "p" }), id);
  notStrictEqual(contentId({ meta: [{ b: 0, a: 1 }], prompt: "p" }), id);
  notStrictEqual(contentId({ prompt: "p", meta: { 0: { a: 1, b: null } } }), id);
});

Deno.test("contentId() of a row is what datasets of earlier runs were read with", () => {
  strictEqual(contentId({ prompt: "1+1", answer: "2" }), "a5d88c9a691942e2cf92");
});
