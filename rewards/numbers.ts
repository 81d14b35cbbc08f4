/**
 * Graders read text that the policy wrote, so every function here takes time linear in its length
 * and reads only the last `ANSWER_CHARACTERS_MAX` characters: answers are at the end.
 */
export const ANSWER_CHARACTERS_MAX = 65_536;

const MINUS = "\u2212"; // Typesetting's minus sign; keyboards write a hyphen.
const SIGN = `[-+${MINUS}]`;
const SPACE = /\s*/y;
const TOKEN = new RegExp(
  `${SIGN}?(?:\\\\?\\$)?${SIGN}?(?:\\d+(?:,\\d+)*(?:\\.\\d+)?|\\.\\d+)`,
  "y",
);
const PLAIN = new RegExp(
  `^(${SIGN}?)\\\\?\\$?(${SIGN}?)(\\d{1,3}(?:,\\d{3})+|\\d*)(?:\\.(\\d*))?$`,
);
/** A digit of any script, or a fraction in one character. */
const DIGIT = /[\p{Nd}\p{Nl}\u00bc-\u00be\u2150-\u215f\u2189]/u;
/** What may be between two digits of one expression: 1/2, 12:30, 1e3, 2x4, 12-15, 5-$7. */
const JOINT = /[\p{L}/:^*×÷+\-\u2212\u2013\u2014$%]/u;
const JOINTS_MAX = 32;
/** What makes a number one of two, or a bound: ±12, +/-12, ≤ 12. */
const INEXACT = `(?:[±∓≤≥≠]|\\+/[-${MINUS}]|\\\\(?:pm|mp|leq?|geq?|neq?)(?![a-z]))`;
/** At the place of a number: what only looks like one, such as ±12, or the end of 1,123. */
const NO_NUMBER = new RegExp(`${INEXACT}\\s*\\S|,\\d`, "y");
const AFTER_INEXACT = new RegExp(`${INEXACT}\\s?(?:\\\\?\\$)?$`);
/**
 * After a number: its next word makes it a multiple, whatever marks are between: 12k, 5 M,
 * 12 *million*, $12$k. A sentence's end is between no number and its word, and a T-shirt no trillion.
 */
const SCALED = new RegExp(
  "^(?:\\\\(?:[a-z]+(?![a-z])|[^a-z\\n\\r])|[^\\\\\\p{L}\\p{N}\\n\\r.,;:!?])*" +
    "(?:[kKMBT]|(?i:hundred|thousand|lakh|million|crore|billion|trillion|dozen|mn|bn)s?)" +
    "(?![\\p{L}\\p{N}]|-\\p{L})",
  "u",
);
const OPERATOR = new RegExp(`[-/^×÷+${MINUS}\u2013]`);
const WORD = /[\p{L}\p{N}]/u;
const SIGNED = new RegExp(`(?<![\\p{L}\\p{N})])[-${MINUS}](?:\\\\?\\$)?$`, "u");

/**
 * A number in one spelling: no commas, no dollar sign, no full stop at its end, no redundant zeros;
 * null if it is not a plain decimal. Commas must separate thousands. Text, not a double, so that
 * long integers keep all their digits.
 */
export function spellNumber(text: string): string | null {
  const match = text.trim().match(PLAIN);
  if (!match) return null;
  const [, first, second, digits, decimals = ""] = match;
  if ((first !== "" && second !== "") || (digits === "" && decimals === "")) return null;
  const whole = digits!.replaceAll(",", "").replace(/^0+(?=\d)/, "") || "0";
  const fraction = withoutZeros(decimals);
  const size = fraction === "" ? whole : `${whole}.${fraction}`;
  const isNegative = first === "-" || first === MINUS || second === "-" || second === MINUS;
  return isNegative && size !== "0" ? `-${size}` : size;
}

/** `/0+$/` would restart at every zero. */
function withoutZeros(decimals: string): string {
  let end = decimals.length;
  while (decimals[end - 1] === "0") end--;
  return decimals.slice(0, end);
}

/**
 * The only number in `text` from `from` to the end of its line, or to `closer`: words may follow,
 * digits may not. null: what starts there is not a number, or not the only one; undefined: no
 * number starts there.
 */
export function numberAlone(
  text: string,
  { from, closer }: { from: number; closer?: string },
): string | null | undefined {
  SPACE.lastIndex = from;
  const begin = from + SPACE.exec(text)![0].length;
  NO_NUMBER.lastIndex = begin;
  if (NO_NUMBER.test(text)) return null;
  TOKEN.lastIndex = begin;
  const token = TOKEN.exec(text)?.[0];
  if (token === undefined) return undefined;
  const after = lineOf(text.slice(begin + token.length));
  const rest = closer === undefined ? after : after.split(closer, 1)[0]!;
  return isContinued(rest) || DIGIT.test(rest) ? null : spellNumber(token);
}

function lineOf(text: string): string {
  return text.split(/[\n\r]/, 1)[0]!;
}

/**
 * Whether what follows a number on its line makes it a different one: a fraction, a multiple, or an
 * operator that nothing follows.
 */
function isContinued(rest: string): boolean {
  if (/^\p{No}/u.test(rest) || SCALED.test(rest)) return true;
  return OPERATOR.test(rest) && !WORD.test(rest);
}

/**
 * The last number of a text; null if the last digit is part of something else: 1/2, 12:30, 1e3,
 * 12-15, 1 234, 12k, ±12.
 */
export function lastNumber(text: string): string | null {
  let last = text.length - 1;
  while (last >= 0 && !DIGIT.test(text[last]!)) last--;
  let begin = last + 1;
  while (/[\d.,]/.test(text[begin - 1] ?? "")) begin--;
  // The sentence's own full stops and commas: "so,12", "...5". One full stop is a decimal point.
  const firstDigit = text.slice(begin, last + 1).search(/\d/);
  if (text[begin] === "," && !/\S/.test(text[begin - 1] ?? " ")) return null;
  if (firstDigit > 1 || text[begin] === ",") begin += Math.max(firstDigit, 0);
  const before = text.slice(Math.max(0, begin - JOINTS_MAX), begin);
  const number = text.slice(begin, last + 1);
  if (number === "" || isJoined(before, number) || AFTER_INEXACT.test(before)) return null;
  if (isContinued(lineOf(text.slice(last + 1)))) return null;
  const sign = SIGNED.test(before) ? "-" : "";
  return spellNumber(sign + number);
}

/** Whether the text before a number makes it part of something that starts with a digit. */
function isJoined(before: string, number: string): boolean {
  let at = before.length;
  while (JOINT.test(before[at - 1] ?? "")) at--;
  const isTight = at < before.length && /\p{N}/u.test(before[at - 1] ?? "");
  const isGrouped = /\p{N}[^\S\n\r]$/u.test(before) && /^\d{3}(?!\d)/.test(number);
  return isTight || isGrouped;
}
