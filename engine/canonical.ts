import { createHash, type Hash } from "node:crypto";
import { BadDataError } from "./errors.ts";

/** Deeper values are refused, cycles with them. */
const DEPTH_MAX = 200;

/**
 * JSON with sorted keys and no white space: equal values have equal text, hence equal hashes. A
 * property whose value is undefined is omitted, like an absent field; undefined anywhere else, a
 * number that is not finite, and anything that is not plain data is refused.
 * @throws {BadDataError} With the path of the offending value.
 */
export function canonicalJson(value: unknown): string {
  return new Sorting().text(null, value);
}

/** A field of an object: its name and its value's canonical JSON. */
export type Field = [name: string, text: string];

/**
 * The fields of a plain object with their canonical JSON, in canonical order; null for other values.
 * @throws As `canonicalJson`.
 */
export function canonicalFields(value: unknown): Field[] | null {
  if (!isPlainObject(value)) return null;
  const sorting = new Sorting();
  const fields = Object.entries(value).filter(([, inner]) => inner !== undefined).sort(byField);
  return fields.map(([name, inner]) => [name, sorting.text(name, inner)]);
}

/** The canonical JSON, in pieces, of the object that has these fields. */
export function objectOf(fields: readonly Field[]): string[] {
  const pieces = fields.flatMap(([name, text], i) => [
    `${i === 0 ? "{" : ","}${JSON.stringify(name)}:`,
    text,
  ]);
  return fields.length === 0 ? ["{}"] : [...pieces, "}"];
}

/** sha256 in hexadecimal, of bytes or of a text as UTF-8, whole or in pieces. */
export function sha256Hex(content: Uint8Array | string | readonly string[]): string {
  const hash = createHash("sha256");
  if (content instanceof Uint8Array) hash.update(content);
  else for (const text of [content].flat()) add(hash, text);
  return hash.digest("hex");
}

/** Longer texts are encoded here, piece by piece: five times as fast, and without a copy. Characters. */
const PIECE = 64 * 1024;
/** Of UTF-8 for a character of UTF-16. */
const BYTES_MAX = 3;

function add(hash: Hash, text: string): void {
  if (text.length <= PIECE) return void hash.update(text);
  const [encoder, bytes] = [new TextEncoder(), new Uint8Array(PIECE * BYTES_MAX)];
  for (let at = 0; at < text.length;) {
    // The end of a piece may cut a pair of surrogates: it goes to the next piece.
    const end = isHighSurrogate(text.charCodeAt(at + PIECE - 1)) ? at + PIECE - 1 : at + PIECE;
    const { read, written } = encoder.encodeInto(text.slice(at, end), bytes);
    hash.update(bytes.subarray(0, written));
    at += read;
  }
}

const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit < 0xdc00;

/** The hash under which an input is recorded. */
export function hashJson(value: unknown): string {
  return sha256Hex(canonicalJson(value));
}

type Path = (string | number)[];

/** Keys that cannot be put in order: JavaScript has "10" before "b", and `__proto__` is no field. */
const SPECIAL = /^(?:0|[1-9]\d*|__proto__)$/;

/** Checks a value, and sorts the properties of its objects. */
class Sorting {
  readonly #path: Path = [];
  #has_special_keys = false;

  /** Canonical JSON of a value, or of a field's value. */
  text(field: string | null, value: unknown): string {
    this.#has_special_keys = false;
    const sorted = field === null ? this.#sorted(value) : this.#inside(field, value);
    return this.#has_special_keys ? write(value) : JSON.stringify(sorted);
  }

  /** The value, or a copy of the parts that were not in order. */
  #sorted(value: unknown): unknown {
    if (isPlain(value)) return value;
    if (typeof value === "number") throw refused(this.#path, `the number ${value}`);
    if (typeof value !== "object") throw refused(this.#path, describe(value));
    if (this.#path.length >= DEPTH_MAX) {
      throw refused(this.#path.slice(0, 6), `a value nested deeper than ${DEPTH_MAX} levels`);
    }
    if (Array.isArray(value)) return this.#array(value);
    if (isPlainObject(value)) return this.#object(value);
    throw refused(this.#path, describe(value));
  }

  #array(value: unknown[]): unknown[] {
    let copy: unknown[] | undefined;
    for (let i = 0; i < value.length; i++) { // Not map(): it would skip the holes of a sparse array.
      if (isPlain(value[i])) continue;
      const canonical = this.#inside(i, value[i]);
      if (canonical !== value[i]) (copy ??= [...value])[i] = canonical;
    }
    return copy ?? value;
  }

  #object(value: Record<string, unknown>): Record<string, unknown> {
    const keys = Object.keys(value);
    let same = true;
    for (let i = 1; i < keys.length && same; i++) same = keys[i - 1]! < keys[i]!;
    if (!same) keys.sort(); // UTF-16 order, as in RFC 8785.
    let copy: Record<string, unknown> | undefined = same ? undefined : {};
    for (const key of keys) {
      if (SPECIAL.test(key)) this.#has_special_keys = true;
      const inner = value[key];
      if (inner === undefined) continue;
      const canonical = isPlain(inner) ? inner : this.#inside(key, inner);
      if (canonical !== inner) copy ??= { ...value };
      if (copy !== undefined) copy[key] = canonical;
    }
    return copy ?? value;
  }

  #inside(key: string | number, value: unknown): unknown {
    this.#path.push(key);
    const canonical = this.#sorted(value);
    this.#path.pop();
    return canonical;
  }
}

/** Whether it is JSON as it stands, and has no parts. */
function isPlain(value: unknown): boolean {
  return typeof value === "string" || typeof value === "boolean" || value === null ||
    Number.isFinite(value);
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === null || prototype === Object.prototype;
}

/** UTF-16 order, as in RFC 8785. */
const byField = ([a]: [string, unknown], [b]: [string, unknown]) => a < b ? -1 : 1;

/** Of a checked value: in order whatever the keys, and several times slower. */
function write(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, inner]) => inner !== undefined).sort(byField);
  return `{${fields.map(([key, inner]) => `${JSON.stringify(key)}:${write(inner)}`).join(",")}}`;
}

function describe(value: unknown): string {
  if (typeof value === "object" && value !== null) {
    return `an instance of ${value.constructor?.name ?? "a class"}`;
  }
  return typeof value === "undefined" ? "undefined" : `a ${typeof value}`;
}

function refused(path: Path, what: string): BadDataError {
  const where = path.length === 0 ? "the value" : `'${path.join(".")}'`;
  return new BadDataError(
    `Cannot record ${where} because it is ${what}: only null, booleans, finite numbers, ` +
      "strings, arrays and plain objects can be",
    { path: path.join(".") },
  );
}
