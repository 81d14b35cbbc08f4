/**
 * Text as a terminal may show it. Data, completions and messages that quote them can hold escape
 * codes, which would move the cursor, recolour or hide what is printed.
 */

/**
 * C0 without tab and newline, DEL, C1, characters that turn the direction of text, and Unicode's
 * separators of lines and paragraphs.
 */
// deno-lint-ignore no-control-regex -- These are the characters sought.
const CONTROL = /[\0-\x08\x0b-\x1f\x7f-\x9f\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;

/** With control characters as JSON writes them, `\u001b`; only tab and newline stay. */
export function visible(text: string): string {
  return text.replace(CONTROL, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
