/**
 * A decoded value as JSON has it. A 64-bit integer becomes a number if that is exact, else its
 * decimal text; bytes become `{ base64 }`; what JSON has no word for (NaN, infinity) becomes null.
 */
export function jsonValue(value: unknown): unknown {
  if (typeof value === "bigint") {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  if (value === undefined || value === null) return null;
  if (typeof value !== "object") {
    return typeof value === "number" && !Number.isFinite(value) ? null : value;
  }
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Uint8Array) return { base64: value.toBase64() };
  if (ArrayBuffer.isView(value)) {
    return Array.from(value as unknown as Iterable<unknown>, jsonValue);
  }
  if (Array.isArray(value)) return value.map(jsonValue);
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, jsonValue(one)]));
}
