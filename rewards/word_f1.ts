import { z } from "zod";
import { setting } from "../data/mod.ts";
import { defineReward, graderSetting, type Reward } from "./define.ts";

/** @internal */
type Reads = { completion: string; row: { answer?: string; [column: string]: unknown } };
const /** @internal */ config = z.strictObject({
  answers: z.string().min(1).optional().describe(
    "The column with a list of right answers, of which the nearest counts. Absent: the row's answer.",
  ).register(setting, graderSetting),
  normalise: z.boolean().default(true).describe(
    "Compare lower-case words without punctuation, symbols and a, an and the.",
  ).register(setting, graderSetting),
});
/** @internal */
type Settings = z.output<typeof config>;

const Answers = z.array(z.string()).min(1);

/**
 * How many words the completion shares with the row's answer, from 0 to 1: the harmonic mean of the
 * share of its words that are in the answer and of the share of the answer's words that it has. A
 * word counts as often as both have it. If normalising leaves nothing of a text (`The The`, `€`),
 * both are compared as they stand, without case.
 *
 * Source: Rajpurkar et al. 2016, arXiv:1606.05250, section 6.1, and SQuAD's evaluation script v1.1,
 * which removes only ASCII's punctuation, ours all of Unicode's punctuation and symbols. It scores 0
 * if nothing is left of a text.
 * @throws {RangeError} If `answers` is not a list of texts: the row is broken.
 * @example
 * ```ts
 * const row = { answer: "the Eiffel Tower" };
 * strictEqual(wordF1.score({ completion: "Eiffel tower.", row }, { normalise: true }), 1);
 * strictEqual(wordF1.score({ completion: "a tower in Paris", row }, { normalise: true }), 0.4);
 * ```
 */
export const wordF1: Reward<"word_f1", typeof config.shape, Reads> = defineReward({
  name: "word_f1",
  about: "The F1 of the completion's words and the answer's, from 0 to 1.",
  runs_on: "engine",
  kept: null,
  right_at: 1,
  config,
  check: (row, settings) => void wantedOf(row, settings),
  answer(completion, settings) {
    const words = wordsOf(completion, settings);
    return (words.length > 0 ? words : split(completion.toLowerCase())).join(" ") || null;
  },
  score({ completion, row }: Reads, settings) {
    if (settings.answers === undefined && row.answer === undefined) return null;
    return Math.max(...wantedOf(row, settings).map((answer) => f1(completion, answer, settings)));
  },
});

function wordsOf(text: string, { normalise }: Settings): string[] {
  if (!normalise) return split(text);
  const plain = text.toLowerCase().replace(/[\p{P}\p{S}]/gu, "");
  return split(plain).filter((word) => word !== "a" && word !== "an" && word !== "the");
}

function split(text: string): string[] {
  return text.split(/\s+/u).filter((word) => word !== "");
}

function f1(completion: string, answer: string, settings: Settings): number {
  const [words, wanted] = [wordsOf(completion, settings), wordsOf(answer, settings)];
  if (words.length > 0 && wanted.length > 0) return overlap(words, wanted);
  return overlap(split(completion.toLowerCase()), split(answer.toLowerCase()));
}

function overlap(words: readonly string[], wanted: readonly string[]): number {
  if (words.length === 0 || wanted.length === 0) return words.length === wanted.length ? 1 : 0;
  const unmatched = new Map<string, number>();
  for (const word of wanted) unmatched.set(word, (unmatched.get(word) ?? 0) + 1);
  let shared = 0;
  for (const word of words) {
    const count = unmatched.get(word) ?? 0;
    if (count > 0) shared++;
    unmatched.set(word, count - 1);
  }
  return 2 * shared / (words.length + wanted.length);
}

function wantedOf(row: Reads["row"], { answers }: Settings): string[] {
  if (answers === undefined) {
    if (row.answer !== undefined) return [row.answer];
    throw new RangeError(
      "Cannot score with word_f1 because the row has no answer: add an `answer`, name its field, " +
        "or set `answers` to a column with a list of them",
    );
  }
  const read = Answers.safeParse(row[answers]);
  if (read.success) return read.data;
  throw new RangeError(
    `Cannot score with word_f1 because the row's '${answers}' is not a list of texts with at least ` +
      "one: name another column in `answers`",
  );
}
