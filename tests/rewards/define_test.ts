import { strictEqual } from "node:assert/strict";
import { z } from "zod";
import { defineReward } from "../../rewards/mod.ts";
import { sample } from "./sample.ts";

Deno.test("defineReward() types the configuration and what the reward reads", () => {
  const mine = defineReward({
    name: "mine",
    about: "How much there is.",
    runs_on: "engine",
    kept: null,
    right_at: null,
    config: z.strictObject({ scale: z.number().default(2) }),
    score: ({ completion, tokens, signal }, { scale }) =>
      signal.aborted ? 0 : (completion.length + tokens) * scale,
  });
  strictEqual(mine.score({ ...sample, completion: "ab" }, { scale: 2 }), 14);
  // @ts-expect-error: a configuration that the schema does not have
  mine.score(sample, { size: 2 });
});
