import { z } from "zod";
import { defineReward, type Reward } from "./define.ts";

/** @internal */
type Reads = { completion: string; row: { answer?: string } };
const /** @internal */ config = z.strictObject({
  trim: z.boolean().default(true).describe("Ignore white space around both texts."),
  ignore_case: z.boolean().default(false).describe("Ignore case."),
});

/**
 * 1 if the completion equals the row's answer, else 0.
 * A row without an answer is not graded.
 * @example
 * ```ts
 * strictEqual(exactMatch.score({ completion: " 12358\n", row: { answer: "12358" } }, { trim: true, ignore_case: false }), 1);
 * ```
 */
export const exactMatch: Reward<"exact_match", typeof config.shape, Reads> = defineReward({
  name: "exact_match",
  about: "1 if the completion equals the row's answer, else 0.",
  runs_on: "engine",
  kept: null,
  right_at: 1,
  config,
  check: (row) => void wantedOf(row),
  answer: spelled,
  score({ completion, row }: Reads, settings) {
    if (row.answer === undefined) return null;
    return spelled(completion, settings) === spelled(wantedOf(row), settings) ? 1 : 0;
  },
});

/** What is compared of a text. */
function spelled(text: string, { trim, ignore_case }: z.output<typeof config>): string {
  const trimmed = trim ? text.trim() : text;
  return ignore_case ? trimmed.toLowerCase() : trimmed;
}

function wantedOf({ answer }: { answer?: string }): string {
  if (answer !== undefined) return answer;
  throw new RangeError(
    "Cannot score with exact_match because the row has no answer: add an `answer`, or name " +
      "its field",
  );
}
