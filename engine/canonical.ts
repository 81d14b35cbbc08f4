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
  return write(value, []);
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

/** Text that JSON needs no escapes for: most keys, names and hashes. */
const PLAIN = /^[ !#-[\]-~]*$/;

function write(value: unknown, path: Path): string {
  if (typeof value === "string") return PLAIN.test(value) ? `"${value}"` : JSON.stringify(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw refused(path, `the number ${value}`);
    return String(value); // As JSON has it, -0 too.
  }
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value !== "object") throw refused(path, describe(value));
  if (path.length >= DEPTH_MAX) {
    throw refused(path.slice(0, 6), `a value nested deeper than ${DEPTH_MAX} levels`);
  }
  if (Array.isArray(value)) return writeArray(value, path);
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && prototype !== Object.prototype) throw refused(path, describe(value));
  return writeObject(value as Record<string, unknown>, path);
}

function writeArray(value: unknown[], path: Path): string {
  let text = "[";
  for (let i = 0; i < value.length; i++) { // Not map(): it would skip the holes of a sparse array.
    path.push(i);
    if (i > 0) text += ",";
    text += write(value[i], path);
    path.pop();
  }
  return text + "]";
}

function writeObject(value: Record<string, unknown>, path: Path): string {
  let text = "{";
  for (const key of Object.keys(value).sort()) { // UTF-16 order, as in RFC 8785.
    if (value[key] === undefined) continue;
    path.push(key);
    if (text.length > 1) text += ",";
    text += `${PLAIN.test(key) ? `"${key}"` : JSON.stringify(key)}:${write(value[key], path)}`;
    path.pop();
  }
  return text + "}";
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
