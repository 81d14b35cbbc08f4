/** A text that may have a number which JavaScript cannot hold: a long integer, a large exponent. */
const AT_RISK = /(?<![.\d])\d{16}|\d[eE]\+?\d{3}/;
const INTEGER = /^-?\d+$/;

/**
 * The value of a JSON text. An integer beyond 2^53, and a number beyond all doubles, is its decimal
 * text, as from Parquet: `JSON.parse` would round it silently.
 * @throws {SyntaxError} If it is not JSON.
 */
export function parseExactly(text: string): unknown {
  // Reviving takes several times as long.
  return AT_RISK.test(text) ? JSON.parse(text, revived) : JSON.parse(text);
}

function revived(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const source = context?.source ?? "";
  return INTEGER.test(source) || !Number.isFinite(value) ? source : value;
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
