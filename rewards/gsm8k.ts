import { z } from "zod";
import { defineReward, type Reward } from "./define.ts";
import { ANSWER_CHARACTERS_MAX, lastNumber, numberAlone, spellNumber } from "./numbers.ts";

const MARK = "####";
const BOX = "\\boxed{";

/** @internal */
type Reads = { completion: string; row: { answer?: string } };
const /** @internal */ config = z.strictObject({
  fallback: z.enum(["none", "last_number"]).default("none").describe(
    "What counts as the answer if nothing is marked with ####: nothing, or the content of " +
      "the last \\boxed{}, or without " +
      "one the last number of the completion.",
  ),
});

/**
 * 1 if the last `#### number` in the completion equals the row's answer, else 0. Commas between
 * thousands, a dollar sign and redundant zeros are ignored. Words may follow on the line, but
 * digits may not.
 *
 * Source: https://github.com/openai/grade-school-math, `dataset.py`. Both agree on every gold
 * answer of GSM8K.
 * - Stricter: there must be no second number. It reads 1 in `1/2`, `1e3` and `1 234`, 12 in
 *   `12-15`, `12:30` and `12 or 15`, 700 in `7,0,0`; here none of these is an answer. Nor is one of
 *   two numbers (`±12`) or a part of one (`,123`).
 * - A number whose next word is k, K, M, B, T, hundred, thousand, lakh, million, crore, billion,
 *   trillion, dozen, mn or bn is a multiple and no answer, whatever marks are between: `12k`,
 *   `$12$k`, `12 (million)`. Other words (`score`, `mil`, `Mio.`) are taken for units, and `12 K`
 *   in kelvin for a multiple.
 * - Where only marks follow on the line and an operator is among them, a part is missing: `5-`,
 *   `**5**-` are no answer. `5- done` is 5.
 * - Wider: it requires one space after the mark and accepts one spelling; we also accept `####7`,
 *   `$7`, `7.`, `7.0`, `+7` and the minus sign U+2212.
 * - It reads the first mark, we the last, because models often restate.
 * @throws {RangeError} If the row's answer is not a number: the row is broken, not the model.
 * @example
 * ```ts
 * strictEqual(gsm8k.score({ completion: "so #### 1,042", row: { answer: "1042" } }, { fallback: "none" }), 1);
 * ```
 */
export const gsm8k: Reward<"gsm8k", typeof config.shape, Reads> = defineReward({
  name: "gsm8k",
  about: "1 if the number after the last #### is the row's answer, else 0.",
  runs_on: "engine",
  kept: null,
  right_at: 1,
  config,
  check: (row) => void wantedOf(row),
  answer,
  score({ completion, row }: Reads, settings) {
    if (row.answer === undefined) return null;
    return answer(completion, settings) === wantedOf(row) ? 1 : 0;
  },
});

function answer(completion: string, { fallback }: z.output<typeof config>): string | null {
  const text = completion.slice(-ANSWER_CHARACTERS_MAX);
  const marked = lastMarked(text);
  return (marked === undefined && fallback === "last_number" ? unmarked(text) : marked) ?? null;
}

function wantedOf({ answer }: { answer?: string }): string {
  const wanted = answer === undefined ? null : spellNumber(answer);
  if (wanted !== null) return wanted;
  throw new RangeError(
    `Cannot score with gsm8k because the row's answer is not a number: it is ${
      JSON.stringify(answer)
    }`,
  );
}

/**
 * The number after the last mark that has one; null: something else follows it; undefined: no mark
 * has a number.
 */
function lastMarked(text: string): string | null | undefined {
  for (let at = text.length; at > 0;) {
    at = text.lastIndexOf(MARK, at - 1);
    if (at < 0) return undefined;
    const found = numberAlone(text, { from: at + MARK.length });
    if (found !== undefined) return found;
  }
  return undefined;
}

function unmarked(text: string): string | null {
  const box = text.lastIndexOf(BOX);
  if (box < 0) return lastNumber(text);
  return numberAlone(text, { from: box + BOX.length, closer: "}" }) ?? null;
}
