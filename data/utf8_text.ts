import { Buffer } from "node:buffer";

/** Stands for bytes that are no UTF-8: half of a surrogate pair, which no UTF-8 has. */
const NO_UTF8 = "\udc80";
const STRICT = new TextDecoder("utf-8", { fatal: true });

/** The text of bytes. Those that are not UTF-8 are marked in it: {@linkcode brokenText} finds it. */
export function utf8Text(bytes: Uint8Array): string {
  return strictText(bytes) ?? utf8OfLatin1(Buffer.from(bytes).toString("latin1"));
}

/** The text of bytes; null: they are not UTF-8. */
export function strictText(bytes: Uint8Array): string | null {
  try {
    return STRICT.decode(bytes);
  } catch {
    return null;
  }
}

/** The text of bytes that were read as Latin-1, one character per byte. */
export function utf8OfLatin1(text: string): string {
  return text.replace(/[\x80-\xff]+/g, (run) => {
    try {
      return STRICT.decode(Buffer.from(run, "latin1"));
    } catch {
      return NO_UTF8;
    }
  });
}

/** A text that no tokenizer can read: where it is inside a value, and why. */
type BrokenText = { path: (string | number)[]; why: string };

/**
 * The first text inside a value that no tokenizer can read. Names of fields count too: their path
 * ends with them. Null: there is none.
 */
export function brokenText(value: unknown): BrokenText | null {
  // Almost every value is whole, and the paths of its fields would take longest.
  if (isWhole(value)) return null;
  if (typeof value === "string") return { path: [], why: whyOf(value) };
  for (const [name, one] of Object.entries(value as object)) {
    if (!name.isWellFormed()) return { path: [name], why: whyOf(name) };
    const broken = brokenText(one);
    const key = Array.isArray(value) ? Number(name) : name;
    if (broken !== null) return { ...broken, path: [key, ...broken.path] };
  }
  return null;
}

function isWhole(value: unknown): boolean {
  if (typeof value === "string") return value.isWellFormed();
  if (value === null || typeof value !== "object") return true;
  if (Array.isArray(value)) return value.every(isWhole);
  for (const name in value) {
    if (!name.isWellFormed() || !isWhole((value as Record<string, unknown>)[name])) return false;
  }
  return true;
}

function whyOf(text: string): string {
  return text.includes(NO_UTF8)
    ? "the text has bytes that are not UTF-8; save the file as UTF-8"
    : "the text has half of a surrogate pair, as of a cut emoji; correct or remove it";
}
