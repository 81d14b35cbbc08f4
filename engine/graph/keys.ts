/**
 * Keys of journal entries: scope path + name + occurrence or id, as in `round/3/score#17`. A
 * segment is one name with its occurrence or id; `/` separates segments and so never occurs inside
 * one.
 */
import { BadDataError } from "../errors.ts";

const PLAIN = /^[A-Za-z0-9_.:@=+-]+$/;

/**
 * Ids are written unchanged if that is unambiguous, otherwise percent-encoded: two ids never share
 * a spelling.
 * @throws {BadDataError} If the id is not valid Unicode.
 */
export function encodeId(id: string | number): string {
  const text = String(id);
  if (PLAIN.test(text)) return text;
  if (text.isWellFormed()) return encodeURIComponent(text);
  throw new BadDataError(
    `Cannot make a key of the id ${JSON.stringify(text)} because it is not valid Unicode. ` +
      "Fix: remove the half of a surrogate pair from it",
    { id: JSON.stringify(text) },
  );
}

/** `score` and 17 -> `score#17`. */
export function segment(name: string, id: string | number): string {
  return `${encodeId(name)}#${encodeId(id)}`;
}

/** Joins a scope path and a segment; the root scope's path is empty. */
export function joinKey(scope: string, child: string): string {
  return scope === "" ? child : `${scope}/${child}`;
}

/**
 * True if `key` is `prefix` or is below it. A plain prefix would also match `evaluate_more` under
 * `evaluate`.
 */
export function isUnder(key: string, prefix: string): boolean {
  if (prefix === "" || key === prefix) return true;
  const next = key[prefix.length];
  return key.startsWith(prefix) && (next === "/" || next === "#");
}

/** What names an item of a `map`, unique in it. */
export type ItemIdValue = string | number;

/** How a `map` finds an item's stable id. */
export type ItemId = (item: never) => string | number;

/**
 * The id of a map's item: by `id` if given, else the string or number itself, else its `id` field.
 */
export function itemId(item: unknown, id?: ItemId): string | number | undefined {
  const found = id ? (id as (item: unknown) => unknown)(item) : plainId(item);
  return typeof found === "string" || typeof found === "number" ? found : undefined;
}

function plainId(item: unknown): unknown {
  if (typeof item === "object" && item !== null && "id" in item) return item.id;
  return item;
}
