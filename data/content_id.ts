import { sha256 } from "@noble/hashes/sha2.js";

/**
 * Equal values give equal text, regardless of the order of keys. As in RFC 8785, except that it
 * refuses lone surrogates, which rows of real data sets contain.
 */
function sortedJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(sortedJson).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return `{${
    fields.map(([key, field]) => `${JSON.stringify(key)}:${sortedJson(field)}`).join(",")
  }}`;
}

const UTF8 = new TextEncoder();
const ID_BYTES = 10;

/**
 * Id of a row without one: the first 20 hexadecimal digits (80 bits) of the sha256 of its content.
 * Not by `node:crypto`: in Deno 2.9, memory of its hashes piles up with the rows.
 */
export function contentId(row: unknown): string {
  return sha256(UTF8.encode(sortedJson(row))).subarray(0, ID_BYTES).toHex();
}
