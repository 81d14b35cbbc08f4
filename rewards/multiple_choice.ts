import { z } from "zod";
import { setting } from "../data/mod.ts";
import { defineReward, graderSetting, type Reward } from "./define.ts";
import { ANSWER_CHARACTERS_MAX } from "./numbers.ts";

/** @internal */
type Reads = { completion: string; row: { answer?: string; [column: string]: unknown } };
const /** @internal */ config = z.strictObject({
  options: z.string().min(1).optional().describe(
    "The column with the list of options. Absent: options are known by their letters alone.",
  ).register(setting, graderSetting),
  answer_is: z.enum(["letter", "index", "text"]).default("letter").describe(
    "What the row's answer is: the letter of an option, its index from 0, or its text.",
  ).register(setting, graderSetting),
  fallback: z.enum(["none", "last_letter"]).default("none").describe(
    "What counts as the answer if none is marked: nothing, or the last capital letter that " +
      "stands alone.",
  ).register(setting, graderSetting),
});
/** @internal */
type Settings = z.output<typeof config>;

const Options = z.array(z.union([z.string(), z.number().transform(String)])).min(2).max(26);
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
/** What introduces an answer. Every part has a bounded length, so the search is linear. */
const MARK = new RegExp(
  String.raw`\\boxed\{|<answer>|\banswer(?: choice| option| letter)?(?:\*\*)?` +
    String.raw`[ \t]{0,4}(?::|=|is\b:?)(?:\*\*)?`,
  "giu",
);
/** A letter in brackets or in bold, in TeX too; what precedes and follows it is bounded. */
const LETTER = new RegExp(
  String.raw`[\s*_"'$]{0,8}(?:(?:the )?(?:option|choice|letter) )?[*_$]{0,4}` +
    String.raw`(?:\\(?:text|textbf|mathrm|mathbf)\{)?([([{])?[*_]{0,2}([A-Za-z])[*_]{0,2}` +
    String.raw`(?![\p{L}\p{N}'’])`,
  "iuy",
);
const CLOSED = /\s{0,8}(?:[)\]}]|<\/)/uy;
const SECOND = new RegExp(
  String.raw`[)\]}*_$]{0,6}[ \t]{0,4}(?:,|\/|&|\bor\b|\band\b)[ \t]{0,4}` +
    String.raw`[([]?[A-Z](?![\p{L}\p{N}])`,
  "uy",
);
const ALONE = /^[\s*_(["'$]{0,8}([A-Za-z])[\s*_)\].:"'$]{0,8}$/u;
/** A completion that starts with `B)`, `(B)` or `B.`. */
const LED = /^[\s*_]{0,8}(?:\(([A-Z])\)|([A-Z])[).:])/u;
const STANDING = /(?<![\p{L}\p{N}'’])([A-Z])(?![\p{L}\p{N}'’])/gu;

/**
 * 1 if the option that the completion chooses is the row's answer, else 0. Its choice is the
 * letter after the last mark that has one: `\boxed{B}`, `<answer>B</answer>`, `Answer: B`, `the
 * answer is (B)`; without a mark, a completion that is only a letter, starts with `B)`, or is the
 * text of an option. Two letters (`A or B`) are no choice.
 *
 * Source: https://github.com/openai/simple-evals at `ee3b0318`, `common.py`
 * (`ANSWER_PATTERN_MULTICHOICE`), which reads the first `Answer: B`; we read the last mark and more
 * kinds of them. It reads the last 65,536 characters of a completion.
 * @throws {RangeError} If the row's answer is none of its options: the row is broken.
 * @example
 * ```ts
 * const settings = { answer_is: "letter", fallback: "none" } as const;
 * const row = { answer: "B" };
 * strictEqual(multipleChoice.score({ completion: "It is (B).", row }, settings), 0);
 * strictEqual(multipleChoice.score({ completion: "The answer is (B).", row }, settings), 1);
 * ```
 */
export const multipleChoice: Reward<"multiple_choice", typeof config.shape, Reads> = defineReward({
  name: "multiple_choice",
  about: "1 if the option that the completion chooses is the row's answer, else 0.",
  runs_on: "engine",
  kept: null,
  right_at: 1,
  config,
  check: (row, settings) => void wantedOf(row, settings),
  score({ completion, row }: Reads, settings) {
    if (row.answer === undefined) return null;
    const { wanted, options, letters } = wantedOf(row, settings);
    const text = completion.slice(-ANSWER_CHARACTERS_MAX);
    let found = marked(text, letters) ?? alone(text, { letters, options });
    if (found === null && settings.fallback === "last_letter") {
      const standing = [...text.matchAll(STANDING)].map((match) => match[1]!);
      found = standing.findLast((letter) => letters.includes(letter)) ?? null;
    }
    return found === wanted ? 1 : 0;
  },
});

type Wanted = { wanted: string; options: string[] | null; letters: string };

function wantedOf(row: Reads["row"], { options: column, answer_is }: Settings): Wanted {
  const broken = (why: string) =>
    new RangeError(`Cannot score with multiple_choice because ${why}`);
  const { answer } = row;
  if (answer === undefined) {
    throw broken("the row has no answer: add an `answer`, or name its field");
  }
  const options = column === undefined ? null : Options.safeParse(row[column]).data;
  if (options === undefined) {
    throw broken(`the row's '${column}' is not a list of 2 to ${LETTERS.length} texts`);
  }
  const letters = options === null ? LETTERS : LETTERS.slice(0, options.length);
  if (answer_is === "text") {
    if (options === null) {
      throw broken("`answer_is: text` needs `options`, the column to find it in");
    }
    const at = options.findIndex((option) => option.trim() === answer.trim());
    if (at < 0) throw broken(`the row's answer is none of its options: ${shown(answer)}`);
    return { wanted: letters[at]!, options, letters };
  }
  const letter = answer_is === "index"
    ? /^\d{1,2}$/.test(answer.trim()) ? letters[Number(answer)] : undefined
    : answer.match(ALONE)?.[1]?.toUpperCase();
  if (letter !== undefined && letters.includes(letter)) return { wanted: letter, options, letters };
  const what = answer_is === "index" ? "index from 0" : "letter";
  throw broken(`the row's answer is not the ${what} of an option: ${shown(answer)}`);
}

function shown(answer: string): string {
  return JSON.stringify(answer.slice(0, 80));
}

/**
 * The letter after the last mark that has one; "": there are two; null: no mark has a letter. A
 * small letter counts only in brackets: `answer is a` starts a sentence.
 */
function marked(text: string, letters: string): string | null {
  let found: string | null = null;
  for (const mark of text.matchAll(MARK)) {
    const end = mark.index + mark[0].length;
    LETTER.lastIndex = end;
    const match = LETTER.exec(text);
    if (match === null) continue;
    const after = end + match[0].length;
    CLOSED.lastIndex = after;
    const inside = mark[0].endsWith("{") || mark[0].endsWith(">") || match[1] !== undefined;
    const enclosed = inside && CLOSED.test(text);
    const letter = enclosed ? match[2]!.toUpperCase() : match[2]!;
    if (!letters.includes(letter)) continue;
    SECOND.lastIndex = after;
    found = SECOND.test(text) ? "" : letter;
  }
  return found;
}

/** The choice of a completion that consists of it. */
function alone(
  text: string,
  { letters, options }: Omit<Wanted, "wanted">,
): string | null {
  const whole = text.trim();
  const led = whole.match(LED);
  const letter = whole.match(ALONE)?.[1]?.toUpperCase() ?? led?.[1] ?? led?.[2];
  if (letter !== undefined && letters.includes(letter)) return letter;
  const at = options?.findIndex((one) => one.trim().toLowerCase() === whole.toLowerCase()) ?? -1;
  return at < 0 ? null : letters[at]!;
}
