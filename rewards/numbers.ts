/**
 * A number in one spelling: no commas, no dollar sign, no full stop at its end, no needless zeros; null if it is none.
 * Text, not a double, so that long integers keep all their digits.
 */
export function spellNumber(text: string): string | null {
  const bare = text.trim().replace(/^\$/, "").replaceAll(",", "").replace(/\.$/, "");
  const match = bare.match(/^([-+]?)\$?(\d*)(?:\.(\d*))?$/);
  if (!match || (match[2] === "" && !match[3])) return null;
  const whole = match[2]!.replace(/^0+(?=\d)/, "") || "0";
  const fraction = (match[3] ?? "").replace(/0+$/, "");
  const size = fraction === "" ? whole : `${whole}.${fraction}`;
  return match[1] === "-" && size !== "0" ? `-${size}` : size;
}
