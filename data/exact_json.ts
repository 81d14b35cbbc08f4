/**
 * A text that may have a number which JavaScript cannot hold (a long integer, a large exponent) or
 * would write differently (1.0, 1e3).
 */
const AT_RISK =
  /(?<![.\d])\d{16}|\d[eE]\+?\d{3}|(?:^|[[:,])\s*-?\d+(?:\.\d*0(?!\d)|(?:\.\d+)?[eE])/;
/** A decimal, which in `DIGITS` characters or more may have more digits than a double. */
const LONG_DECIMAL = /(?:^|[[:,])\s*-?(\d+\.\d+)/g;
/** Every such text has it, or so many digits and points in a row, which are found sooner. */
const FRACTION = /\d[.eE]/;
const DIGITS = 16;
const INTEGER = /^-?\d+$/;

/** Whether `JSON.parse` may read a number of a JSON text otherwise than {@linkcode parseExactly}. */
export function isAtRisk(text: string): boolean {
  const isLong = hasManyDigits(text);
  if (!isLong && !FRACTION.test(text)) return false;
  if (AT_RISK.test(text)) return true;
  return isLong &&
    text.matchAll(LONG_DECIMAL).some(([, decimal]) => String(Number(decimal)) !== decimal);
}

/** Whether a text has `DIGITS` digits or points in a row: one is at a multiple of this number. */
function hasManyDigits(text: string): boolean {
  for (let at = DIGITS; at <= text.length; at += DIGITS) {
    let [first, end] = [at - 1, at - 1];
    while (isOfNumber(text.charCodeAt(end))) end++;
    if (end === first) continue;
    while (first > 0 && isOfNumber(text.charCodeAt(first - 1))) first--;
    if (end - first >= DIGITS) return true;
  }
  return false;
}

function isOfNumber(code: number): boolean {
  return (code >= 48 && code <= 57) || code === 46; // NaN, behind the end, is none.
}

/** `toPrecision` writes no more digits. */
const PRECISION_MAX = 100;

/**
 * Whether a double has all digits of a number's text: it has them in its shortest form, or is the
 * same when it is written with as many. A tie may have been rounded down.
 */
function isHeld(source: string): boolean {
  const value = Number(source);
  const digits = significant(source);
  if (digits === "" || digits === significant(String(value))) return true;
  if (digits.length > PRECISION_MAX) return false;
  if (digits === significant(value.toPrecision(digits.length))) return true;
  return `${digits}5` === significant(value.toPrecision(PRECISION_MAX));
}

/** The digits of a number's text, without zeros at its ends. */
function significant(source: string): string {
  return source.replace(/[eE].*/, "").replaceAll(/[-.]/g, "").replace(/^0+/, "").replace(/0+$/, "");
}

/**
 * The value of a JSON text. An integer beyond 2^53, and any number whose digits no double has, is its
 * text, as from Parquet: `JSON.parse` would round it silently.
 * @throws {SyntaxError} If it is not JSON.
 */
export function parseExactly(text: string): unknown {
  // Reviving takes several times as long.
  return isAtRisk(text) ? JSON.parse(text, revived) : JSON.parse(text);
}

function revived(
  this: object,
  key: string,
  value: unknown,
  context?: { source?: string },
): unknown {
  const source = context?.source;
  if (typeof value !== "number" || source === undefined) return value;
  if (INTEGER.test(source)) return Number.isSafeInteger(value) ? value : source;
  if (!Number.isFinite(value) || !isHeld(source)) return source;
  if (String(value) === source) return value;
  const spelled = SPELLED.get(this) ?? new Map<string, string>();
  SPELLED.set(this, spelled.set(key, source));
  return value;
}

/** How a text spelled the numbers of an object or a list that JavaScript writes differently. */
const SPELLED = new WeakMap<object, Map<string, string>>();

/**
 * How a text spelled a number of an object, in digits: `1.0`, and 1000 for `1e3`, which graders do not
 * read. `value`: the number.
 */
export function spelled(object: object, key: string, value: number): string {
  const source = SPELLED.get(object)?.get(key);
  const isOwn = source !== undefined && !/[eE]/.test(source) && Object.is(Number(source), value);
  return isOwn ? source : digitsOf(value);
}

/** The copy of an object or a list, of which {@linkcode writeExactly} then knows as much. */
export function spelledAs<T extends object>(original: object, copy: T): T {
  const spelled = SPELLED.get(original);
  if (spelled !== undefined) SPELLED.set(copy, spelled);
  return copy;
}

/**
 * JSON of a value, its numbers as the text had them that {@linkcode parseExactly} has read: a float
 * stays one (1.0), which a chat template in Python tells from an integer.
 */
export function writeExactly(value: unknown): string {
  return JSON.stringify(value, function (this: object, key: string, one: unknown) {
    const source = typeof one === "number" ? SPELLED.get(this)?.get(key) : undefined;
    return source === undefined ? one : RawJson.rawJSON(source);
  });
}

/** `JSON.rawJSON` and `isRawJSON`, which TypeScript's library does not know yet. */
const RawJson = JSON as typeof JSON & {
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
};

/**
 * The value of a JSON text that is only written again: its numbers are as `JSON.stringify` writes
 * them from the text (1.0, 9007199254740993), and nothing to compute with.
 * @throws {SyntaxError} If it is not JSON.
 */
export function parseAsWritten(text: string): unknown {
  return JSON.parse(text, (_key, value, context?: { source?: string }) => {
    const source = context?.source;
    return typeof value === "number" && source !== undefined ? RawJson.rawJSON(source) : value;
  });
}

/** Whether a value is a number that {@linkcode parseAsWritten} has left as it is written. */
export function isAsWritten(value: unknown): boolean {
  return RawJson.isRawJSON(value);
}

/**
 * A finite number in digits, without an exponent: graders read no other form. Not by `String`, whose
 * texts of integers V8 remembers: memory would grow by millions of them.
 */
export function digitsOf(value: number): string {
  if (Number.isInteger(value)) return BigInt(value).toString();
  const [mantissa, exponent] = String(value).split("e-") as [string, string | undefined];
  if (exponent === undefined) return mantissa;
  const [sign, digits] = mantissa.startsWith("-") ? ["-", mantissa.slice(1)] : ["", mantissa];
  return `${sign}0.${"0".repeat(Number(exponent) - 1)}${digits.replace(".", "")}`;
}
