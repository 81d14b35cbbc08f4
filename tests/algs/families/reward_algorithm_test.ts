import { deepStrictEqual } from "node:assert/strict";
import { z } from "zod";
import { type CreditRound, klSettings, tokenMean, traceAlgorithm } from "../../../algs/mod.ts";
import { rewardAlgorithm } from "../../../algs/families/reward_algorithm.ts";

/** Half of each reward; with values, less the value of the first token. */
const half = rewardAlgorithm({
  name: "half",
  config: z.strictObject({ ...klSettings(), share: z.number().default(0.5) }),
  needs: ["values"],
  advantage: ({ reward, values }, { share }) => reward.map((r, i) => share * r - values[i]![0]!),
  loss: ({ logp, coef }) => ({ loss: tokenMean(logp.mul(coef.kl)) }),
});

const ROUND: CreditRound = {
  reward: [4, 2],
  group: [0, 0],
  stop: ["stop", "stop"],
  length: [2, 1],
};
const scored = {
  values: [[1, 7], [0]],
  old_logp: [[-1, -1], [-1]],
  ref_logp: [[-2, -2], [-1]],
  coef: { kl: 0.25 },
};
const settings = (changes: z.input<typeof half.config>) => half.config.parse(changes);
const needs = half.credit!.needs as unknown as (c: z.output<typeof half.config>) => string[];

Deno.test("rewardAlgorithm() needs what its advantage reads, and what its KL reads", () => {
  deepStrictEqual(needs(settings({})), ["values"]);
  deepStrictEqual(needs(settings({ kl_coef: 1 })), ["values"]);
  const inReward = settings({ kl_coef: 1, kl_in: "reward" });
  deepStrictEqual(needs(inReward), ["values", "old_logp", "ref_logp"]);
  const steered = settings({ kl_coef: 1, kl_target: 6 });
  deepStrictEqual(needs(steered), ["values", "old_logp", "ref_logp", "coef"]);
});

Deno.test("rewardAlgorithm() gives its advantage the settings and the rewards less the KL", () => {
  const assign = (changes: z.input<typeof half.config>) =>
    half.credit!.assign({ ...ROUND, ...scored }, settings(changes)).advantage;
  deepStrictEqual(assign({}), [0.5 * 4 - 1, 0.5 * 2]);
  // k1 is 1 on both tokens of the first completion: 0.5 each leaves 4 - 1.
  deepStrictEqual(assign({ kl_coef: 0.5, kl_in: "reward", kl_estimator: "k1" }), [0.5 * 3 - 1, 1]);
});

Deno.test("rewardAlgorithm() gives the loss the weight of the KL, which starts at kl_coef", () => {
  deepStrictEqual(half.coef!.kl(settings({ kl_coef: 0.3, kl_target: 6 })), 0.3);
  deepStrictEqual(traceAlgorithm(half, {}).loss.inputs, ["coef.kl", "logp", "n_tokens"]);
});

Deno.test("rewardAlgorithm() refuses an advantage that reads what it does not need", () => {
  const wrong = rewardAlgorithm({
    name: "wrong",
    config: z.strictObject(klSettings()),
    // @ts-expect-error `values` is not among what it needs.
    advantage: ({ values }) => values,
    loss: ({ logp }) => ({ loss: tokenMean(logp) }),
  });
  const none = wrong.credit!.needs as unknown as typeof needs;
  deepStrictEqual(none(settings({})), []);
});
