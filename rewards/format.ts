import { RE2JS } from "re2js";
import { z } from "zod";
import { setting } from "../data/mod.ts";
import { defineReward, graderSetting, type Reward } from "./define.ts";

/** @internal */
type Reads = { completion: string };
const Tag = z.string().regex(/^[A-Za-z_][\w-]{0,63}$/, "must be a tag's name, such as think");
const PATTERN_CHARACTERS_MAX = 1_000;
/** RE2's time is program × text, so both are bounded: the slowest pattern tried took 0.5 s. */
const PROGRAM_MAX = 2_000;
const TEXT_CHARACTERS_MAX = 65_536;

const /** @internal */ config = z.strictObject({
  tags: z.array(Tag).min(1).max(16).optional().describe(
    "Tags that the completion consists of, in this order, each once. Absent: `pattern` decides.",
  ).register(setting, graderSetting),
  text_outside: z.boolean().default(false).describe(
    "Whether text may stand before, between and after the tags.",
  ).register(setting, graderSetting),
  opened: z.boolean().default(false).describe(
    "Whether the prompt already ends with the first opening tag.",
  ).register(setting, graderSetting),
  pattern: z.string().min(1).max(PATTERN_CHARACTERS_MAX)
    .refine((text) => problemOf(text) === null, {
      error: ({ input }) =>
        `must be a regular expression of RE2, which has no lookaround and no backreferences: ` +
        problemOf(String(input)),
    }).optional().describe(
      "A regular expression of RE2 that the whole completion must match, without white space " +
        "around it. `(?s)` lets a dot match line breaks.",
    ).register(setting, graderSetting),
});
/** @internal */
type Settings = z.output<typeof config>;

/** Whether an entry has either `tags` or `pattern`. */
export function hasOneForm({ tags, pattern }: Pick<Settings, "tags" | "pattern">): boolean {
  return (tags === undefined) !== (pattern === undefined);
}

/**
 * 1 if the completion has the required form, else 0: `tags` in order, each opened and closed once,
 * or a `pattern` that the whole completion matches. It says nothing about the content, so pay it
 * with `when`.
 *
 * Patterns run on RE2 (npm `re2js`), whose time is linear in the text, because the policy writes
 * the text: an engine that backtracks can need exponential time. A completion of more than 65,536
 * characters never matches a pattern.
 * @example
 * ```ts
 * const settings = { tags: ["think"], text_outside: true, opened: false };
 * strictEqual(format.score({ completion: "<think>2+2</think> 4" }, settings), 1);
 * ```
 */
export const format: Reward<"format", typeof config.shape, Reads> = defineReward({
  name: "format",
  runs_on: "engine",
  config,
  score({ completion }: Reads, { tags, text_outside, opened, pattern }) {
    if (pattern !== undefined) {
      const text = completion.trim();
      return text.length <= TEXT_CHARACTERS_MAX && RE2JS.compile(pattern).matches(text) ? 1 : 0;
    }
    const text = opened ? `<${tags![0]}>${completion}` : completion;
    return inOrder(text, tags!, text_outside) ? 1 : 0;
  },
});

function inOrder(text: string, tags: string[], outside: boolean): boolean {
  let at = 0;
  for (const tag of tags) {
    const [open, close] = [`<${tag}>`, `</${tag}>`];
    const begin = text.indexOf(open, at);
    const end = begin < 0 ? -1 : text.indexOf(close, begin + open.length);
    if (end < 0 || !isOnce(text, open) || !isOnce(text, close)) return false;
    if (!outside && text.slice(at, begin).trim() !== "") return false;
    at = end + close.length;
  }
  return outside || text.slice(at).trim() === "";
}

function isOnce(text: string, part: string): boolean {
  return text.indexOf(part) === text.lastIndexOf(part);
}

function problemOf(pattern: string): string | null {
  try {
    const size = RE2JS.compile(pattern).programSize();
    return size <= PROGRAM_MAX ? null : "its repetitions are too large";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
