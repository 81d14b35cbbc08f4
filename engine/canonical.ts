import { createHash } from "node:crypto";
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
  const sorting = new Sorting();
  const sorted = sorting.sorted(value);
  return sorting.has_special_keys ? write(value) : JSON.stringify(sorted);
}

/** sha256 in hexadecimal; strings as UTF-8. */
export function sha256Hex(bytes: Uint8Array | string): string {
  return createHash("sha256").update(bytes).digest("hex");
}

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
  has_special_keys = false;

  /** The value, or a copy of the parts that were not in order. */
  sorted(value: unknown): unknown {
    if (typeof value === "string" || typeof value === "boolean" || value === null) return value;
    if (typeof value === "number") {
      if (!Number.isFinite(value)) throw refused(this.#path, `the number ${value}`);
      return value;
    }
    if (typeof value !== "object") throw refused(this.#path, describe(value));
    if (this.#path.length >= DEPTH_MAX) {
      throw refused(this.#path.slice(0, 6), `a value nested deeper than ${DEPTH_MAX} levels`);
    }
    if (Array.isArray(value)) return this.#array(value);
    const prototype = Object.getPrototypeOf(value);
    if (prototype === null || prototype === Object.prototype) {
      return this.#object(value as Record<string, unknown>);
    }
    throw refused(this.#path, describe(value));
  }

  #array(value: unknown[]): unknown[] {
    let copy: unknown[] | undefined;
    for (let i = 0; i < value.length; i++) { // Not map(): it would skip the holes of a sparse array.
      const made = this.#inside(i, value[i]);
      if (made !== value[i]) (copy ??= [...value])[i] = made;
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
      if (SPECIAL.test(key)) this.has_special_keys = true;
      const inner = value[key];
      if (inner === undefined) continue;
      const made = this.#inside(key, inner);
      if (made !== inner) copy ??= { ...value };
      if (copy !== undefined) copy[key] = made;
    }
    return copy ?? value;
  }

  #inside(key: string | number, value: unknown): unknown {
    this.#path.push(key);
    const made = this.sorted(value);
    this.#path.pop();
    return made;
  }
}

/** Of a checked value: in order whatever the keys, and several times slower. */
function write(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(write).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).filter(([, inner]) => inner !== undefined)
    .sort(([a], [b]) => a < b ? -1 : 1);
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
