import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { brokenText, utf8OfLatin1, utf8Text } from "../../data/utf8_text.ts";

const bytesOf = (latin1: string) => Uint8Array.from(latin1, (one) => one.charCodeAt(0));

Deno.test("utf8Text() and utf8OfLatin1() read all UTF-8, and mark nothing of it", () => {
  fc.assert(
    fc.property(fc.string({ unit: "binary" }), (text) => {
      const bytes = new TextEncoder().encode(text);
      const latin1 = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
      strictEqual(utf8OfLatin1(latin1), text);
      strictEqual(utf8Text(bytes), new TextDecoder().decode(bytes));
      strictEqual(brokenText(utf8Text(bytes)), null);
    }),
    { seed: 1 },
  );
});

Deno.test("brokenText() finds the first text that no tokenizer can read, with its path", () => {
  const half = JSON.parse('"half \\ud83d emoji"');
  strictEqual(brokenText({ a: "\u{1f600}", b: [1, null, true, { c: "\ufffd" }] }), null);
  const found = brokenText({ a: "x", messages: [{ content: "a" }, { content: half }] })!;
  deepStrictEqual(found.path, ["messages", 1, "content"]);
  match(found.why, /half of a surrogate pair/);
  const bytes = brokenText({ q: utf8Text(bytesOf("caf\xe9 au lait")) })!;
  deepStrictEqual(bytes.path, ["q"]);
  match(bytes.why, /bytes that are not UTF-8; save the file as UTF-8/);
  deepStrictEqual(brokenText({ a: { [half]: 1 } })!.path, ["a", half]);
});
