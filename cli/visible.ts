/**
 * Text as a terminal may show it. Data, completions and messages that quote them can hold escape
 * codes, which would move the cursor, recolour or hide what is printed.
 */

/** C0 without tab and newline, DEL, C1, and characters that turn the direction of text. */
// deno-lint-ignore no-control-regex -- These are the characters sought.
const CONTROL = /[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g;

/** With control characters as JSON writes them, `\u001b`; only tab and newline stay. */
export function visible(text: string): string {
  return text.replace(CONTROL, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
