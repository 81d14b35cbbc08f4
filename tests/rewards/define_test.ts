import { strictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import { checkedScore, defineReward } from "../../rewards/mod.ts";
import { sample } from "./sample.ts";

Deno.test("checkedScore() takes nothing, a number or a score with metrics, and refuses what is not finite", () => {
  for (const score of [null, 0.5, { score: 2 }, { score: 2, metrics: { a: 1 } }]) {
    strictEqual(checkedScore(score, "r"), score);
  }
  throws(() => checkedScore(NaN, "r"), /Cannot use a score of 'r' .* it is NaN/);
  throws(
    () => checkedScore({ score: Infinity, metrics: { a: 1 } }, "r"),
    /Cannot use a score of 'r' .* it is Infinity/,
  );
  throws(() => checkedScore({ score: 2, metrics: { a: NaN } }, "r"), /Cannot use 'a' of 'r' .* it is NaN/);
  throws(() => checkedScore(undefined as unknown as number, "r"), RangeError);
});

Deno.test("defineReward() types the configuration and what the reward reads", () => {
  const mine = defineReward({
    name: "mine",
    runs_on: "engine",
    config: z.strictObject({ scale: z.number().default(2) }),
    score: ({ completion, tokens, signal }, { scale }) => signal.aborted ? 0 : (completion.length + tokens) * scale,
  });
  strictEqual(mine.score({ ...sample, completion: "ab" }, { scale: 2 }), 14);
  // @ts-expect-error: a configuration that the schema does not have
  mine.score(sample, { size: 2 });
});
