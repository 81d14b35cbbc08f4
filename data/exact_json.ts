/**
 * A text that may have a number which JavaScript cannot hold (a long integer, a large exponent) or
 * would write differently (1.0, 1e3).
 */
const AT_RISK =
  /(?<![.\d])\d{16}|\d[eE]\+?\d{3}|(?:^|[[:,])\s*-?\d+(?:\.\d*0(?!\d)|(?:\.\d+)?[eE])/;
/** Every such text has it or so many digits in a row, which is found in a fraction of the time. */
const FRACTION = /\d[.eE]/;
const DIGITS = 16;
const INTEGER = /^-?\d+$/;

/** Whether `JSON.parse` may read a number of a JSON text otherwise than {@linkcode parseExactly}. */
export function isAtRisk(text: string): boolean {
  return (hasManyDigits(text) || FRACTION.test(text)) && AT_RISK.test(text);
}

/** Whether a text has `DIGITS` digits in a row: one of them is at a multiple of this number. */
function hasManyDigits(text: string): boolean {
  for (let at = DIGITS; at <= text.length; at += DIGITS) {
    let [first, end] = [at - 1, at - 1];
    while (isDigit(text.charCodeAt(end))) end++;
    if (end === first) continue;
    while (first > 0 && isDigit(text.charCodeAt(first - 1))) first--;
    if (end - first >= DIGITS) return true;
  }
  return false;
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57; // NaN, behind the end, is none.
}

/**
 * The value of a JSON text. An integer beyond 2^53, and a number beyond all doubles, is its decimal
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
  if (!Number.isFinite(value)) return source;
  if (String(value) === source) return value;
  const spelled = SPELLED.get(this) ?? new Map<string, string>();
  SPELLED.set(this, spelled.set(key, source));
  return value;
}

/** How a text spelled the numbers of an object or a list that JavaScript writes differently. */
const SPELLED = new WeakMap<object, Map<string, string>>();

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

/** A finite number in digits, without an exponent: graders read no other form. */
export function digitsOf(value: number): string {
  if (Number.isInteger(value)) return BigInt(value).toString();
  const [mantissa, exponent] = String(value).split("e-") as [string, string | undefined];
  if (exponent === undefined) return mantissa;
  const [sign, digits] = mantissa.startsWith("-") ? ["-", mantissa.slice(1)] : ["", mantissa];
  return `${sign}0.${"0".repeat(Number(exponent) - 1)}${digits.replace(".", "")}`;
}
