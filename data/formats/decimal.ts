import { digitsOf } from "../exact_json.ts";

/**
 * A decimal of Parquet, stored without its point: a number if that is exact, else its decimal text.
 * Bytes are big-endian two's complement.
 */
export function decimalOf(stored: unknown, scale: number): number | string {
  const whole = stored instanceof Uint8Array ? signed(stored) : BigInt(stored as number | bigint);
  const [sign, digits] = whole < 0n ? ["-", `${-whole}`] : ["", `${whole}`];
  const padded = digits.padStart(scale + 1, "0");
  const point = padded.length - scale;
  const fraction = padded.slice(point).replace(/0+$/, "");
  const text = `${sign}${padded.slice(0, point)}${fraction === "" ? "" : `.${fraction}`}`;
  const number = Number(text);
  const isExact = !Number.isInteger(number) || Number.isSafeInteger(number);
  return isExact && digitsOf(number) === text ? number : text;
}

function signed(bytes: Uint8Array): bigint {
  const whole = bytes.length === 0 ? 0n : BigInt(`0x${bytes.toHex()}`);
  return BigInt.asIntN(bytes.length * 8, whole);
}
