import { z } from "zod";
import { defineReward } from "./define.ts";

/**
 * The share of characters at their place in the row's answer, from 0 to 1: 1 is the answer itself,
 * 0 has no right character, however short it is. It is a share of the longer text, in Unicode code
 * points, without surrounding white space. For models early in training, which never get everything
 * right.
 * @throws {RangeError} If the row has no answer: the row is broken, not the model.
 * @example
 * ```ts
 * strictEqual(charactersInPlace.score({ completion: "12354", row: { answer: "12345" } }, {}), 0.6);
 * ```
 */
export const charactersInPlace = defineReward({
  name: "characters_in_place",
  about: "The share of characters in the same place as in the answer.",
  runs_on: "engine",
  kept: null,
  right_at: null,
  config: z.strictObject({}),
  check: (row) => void wantedOf(row),
  score({ completion, row }: { completion: string; row: { answer?: string } }) {
    const [typed, wanted] = [[...completion.trim()], [...wantedOf(row).trim()]];
    const right = wanted.filter((character, i) => typed[i] === character).length;
    return right / Math.max(typed.length, wanted.length, 1);
  },
});

function wantedOf({ answer }: { answer?: string }): string {
  if (answer !== undefined) return answer;
  throw new RangeError(
    "Cannot score with characters_in_place because the row has no answer: add an `answer`, " +
      "or name its field",
  );
}
