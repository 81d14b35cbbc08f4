import { RE2JS } from "re2js";
import { z } from "zod";
import { setting } from "../data/mod.ts";
import { defineReward, graderSetting, type Reward } from "./define.ts";
import { rePattern, TEXT_CHARACTERS_MAX } from "./pattern.ts";

/** @internal */
type Reads = { completion: string };
const Tag = z.string().regex(/^[A-Za-z_][\w-]{0,63}$/, "must be a tag's name, such as think");

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
  pattern: rePattern.optional().describe(
    "A regular expression of RE2 that the whole completion must match, without white space " +
      "around it. `(?s)` lets a dot match line breaks.",
  ).register(setting, graderSetting),
}).refine(
  ({ tags, pattern }) => (tags === undefined) !== (pattern === undefined),
  "needs either `tags` or `pattern`",
);
/** @internal */
type Settings = z.output<typeof config>;

/**
 * 1 if the completion has the required form, else 0: `tags` in order, each opened and closed once,
 * or a `pattern` that the whole completion matches. It says nothing about the content, so pay it
 * with `when`.
 *
 * A completion of more than 65,536 characters never matches a pattern.
 * @example
 * ```ts
 * const settings = { tags: ["think"], text_outside: true, opened: false };
 * strictEqual(format.score({ completion: "<think>2+2</think> 4" }, settings), 1);
 * ```
 */
export const format: Reward<"format", typeof config.shape, Reads> = defineReward({
  name: "format",
  about: "1 if the completion has the required tags or matches the pattern, else 0.",
  runs_on: "engine",
  kept: null,
  right_at: null,
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
