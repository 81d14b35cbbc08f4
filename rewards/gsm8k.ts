import { z } from "zod";
import { defineReward } from "./define.ts";
import { spellNumber } from "./numbers.ts";

const MARKED = /####\s*(-?\$?[\d.,]*\d)/g;
// A minus right after a digit or a letter is a dash, as in `5-7`.
const ANY = /(?:(?<![\w)])-)?\$?(?:\d[\d,]*(?:\.\d+)?|\.\d+)/g;

/**
 * 1 if the last `#### number` in the completion equals the row's answer, else 0. Commas, a dollar sign and needless
 * zeros are ignored. Source: https://github.com/openai/grade-school-math, `dataset.py`; it reads the first mark, we the
 * last, because models often restate.
 * @throws {RangeError} If the row's answer is not a number: the row is broken, not the model.
 * @example
 * ```ts
 * strictEqual(gsm8k.score({ completion: "so #### 1,042", row: { answer: "1042" } }, { fallback: "none" }), 1);
 * ```
 */
export const gsm8k = defineReward({
  name: "gsm8k",
  runs_on: "engine",
  config: z.strictObject({
    fallback: z.enum(["none", "last_number"]).default("none").describe(
      "What counts as the answer when nothing is marked with ####: nothing, or the last number of the completion.",
    ),
  }),
  score({ completion, row }: { completion: string; row: { answer?: string } }, { fallback }) {
    const wanted = row.answer === undefined ? null : spellNumber(row.answer);
    if (wanted === null) {
      throw new RangeError(
        `Cannot score with gsm8k as the row's answer is not a number: it is ${JSON.stringify(row.answer)}`,
      );
    }
    const marked = [...completion.matchAll(MARKED)].at(-1)?.[1];
    const found = marked ?? (fallback === "last_number" ? completion.match(ANY)?.at(-1) : undefined);
    return found !== undefined && spellNumber(found) === wanted ? 1 : 0;
  },
});
