import { createHash } from "node:crypto";

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

/**
 * Id of a row without one: the first 20 hexadecimal digits (80 bits) of the sha256 of its content.
 */
export function contentId(row: unknown): string {
  return createHash("sha256").update(sortedJson(row)).digest("hex").slice(0, 20);
}
