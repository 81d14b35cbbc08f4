import { sha256 } from "@noble/hashes/sha2.js";

/**
 * Equal values give equal text, regardless of the order of keys. As in RFC 8785, except that it
 * refuses lone surrogates, which rows of real data sets contain.
 */
function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const fields = value as Record<string, unknown>;
  const names = Object.keys(fields).sort();
  return `{${
    names.map((name) => `${JSON.stringify(name)}:${sortedJson(fields[name])}`).join(",")
  }}`;
}

const UTF8 = new TextEncoder();
const ID_BYTES = 10;
/** For all ids, one after another: to make a hash and its buffers takes longer than to compute it. */
const [EMPTY, HASH] = [sha256.create(), sha256.create()];
const [CONTENT, DIGEST] = [new Uint8Array(64 * 1024), new Uint8Array(HASH.outputLen)];

/**
 * Id of a row without one: the first 20 hexadecimal digits (80 bits) of the sha256 of its content.
 * Not by `node:crypto`: in Deno 2.9, memory of its hashes piles up with the rows.
 */
export function contentId(row: unknown): string {
  const text = sortedJson(row);
  const { read, written } = UTF8.encodeInto(text, CONTENT);
  const bytes = read === text.length ? CONTENT.subarray(0, written) : UTF8.encode(text);
  EMPTY._cloneInto(HASH).update(bytes).digestInto(DIGEST);
  return DIGEST.subarray(0, ID_BYTES).toHex();
}
