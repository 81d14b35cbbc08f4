import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import {
  AlgorithmChoice,
  type AnyAlgorithm,
  creditOf,
  type CreditRound,
  evaluate,
  expressionsOf,
  hasSignal,
  maskedOf,
  ONLINE_ALGORITHMS,
} from "../../../algs/mod.ts";

/** One group: right, wrong, and cut. One, three and two tokens. */
const ROUND: CreditRound = {
  reward: [1, 0, 0],
  group: [0, 0, 0],
  stop: ["stop", "stop", "length"],
  length: [1, 3, 2],
};

/** The loss of the round on the policy that sampled it, as a step has it. */
function lossOf(settings: Record<string, unknown>): number {
  const choice = AlgorithmChoice.parse({ name: "grpo", std_epsilon: 0, ...settings });
  const { advantage } = creditOf(choice, ROUND);
  const masked = maskedOf(choice, ROUND);
  const sequences = ROUND.length.map((tokens, i) => {
    const column = (value: number) => new Array<number>(tokens).fill(value);
    const inputs = {
      logp: column(-1),
      old_logp: column(-1),
      advantage: column(advantage[i] as number),
    };
    return { group: 0, mask: column(masked[i] ? 0 : 1), inputs };
  });
  return evaluate(expressionsOf(choice).loss, { sequences }).loss;
}

Deno.test("mask_truncated: the cut completion is compared, but in no sum and denominator", () => {
  // The mean is 1/3 and the variance ((2/3)² + 2 (1/3)²) ÷ 2 = 1/3, so the advantages are 2a, −a
  // and −a.
  const a = Math.sqrt(1 / 3);
  const by_hand = {
    token_mean: [(-2 * a + 3 * a) / 4, (-2 * a + 3 * a + 2 * a) / 6],
    sequence_mean: [(-2 * a + a) / 2, (-2 * a + a + a) / 3],
    sequence_mean_token_sum: [(-2 * a + 3 * a) / 2 / 8, (-2 * a + 3 * a + 2 * a) / 3 / 8],
    group_mean: [(-2 * a + 3 * a) / 4, (-2 * a + 3 * a + 2 * a) / 6],
    token_sum: [(-2 * a + 3 * a) / 8, (-2 * a + 3 * a + 2 * a) / 8],
  };
  for (const [aggregation, [masked, whole]] of Object.entries(by_hand)) {
    const settings = { aggregation, loss_denominator: aggregation.endsWith("_sum") ? 8 : 1 };
    for (const [mask_truncated, expected] of [[true, masked!], [false, whole!]] as const) {
      const found = lossOf({ ...settings, mask_truncated });
      ok(
        Math.abs(found - expected) < 1e-15,
        `${aggregation}, ${mask_truncated}: ${found}, by hand ${expected}`,
      );
    }
  }
});

Deno.test("mask_truncated is a setting of every online algorithm, off by default", () => {
  const shared = Object.values(ONLINE_ALGORITHMS as Record<string, AnyAlgorithm>)
    .filter(({ config }) => "kl_coef" in config.shape).map(({ name }) => name);
  ok(shared.length >= 11);
  for (const name of shared) {
    const choice = AlgorithmChoice.parse({ name });
    strictEqual((choice as { mask_truncated: boolean }).mask_truncated, false, name);
    deepStrictEqual(maskedOf(choice, ROUND), [false, false, false]);
    const masking = AlgorithmChoice.parse({ name, mask_truncated: true });
    deepStrictEqual(maskedOf(masking, ROUND), [false, false, true], name);
    deepStrictEqual(expressionsOf(masking), expressionsOf(choice), "the loss itself is the same");
  }
  const file = AlgorithmChoice.parse({ name: "python", source: "a.py", mask_truncated: true });
  deepStrictEqual(maskedOf(file, ROUND), [false, false, true]);
});

Deno.test("only what the token limit cut is masked: time, turns and errors do not count", () => {
  const choice = AlgorithmChoice.parse({ name: "grpo", mask_truncated: true });
  const stop: CreditRound["stop"] = ["stop", "length", "max_turns", "timeout", "error", "abort"];
  deepStrictEqual(maskedOf(choice, { stop }), [false, true, false, false, false, false]);
});

Deno.test("hasSignal() asks the completions that are trained alone", () => {
  const group = (reward: number[], stop: CreditRound["stop"]): CreditRound => ({
    reward,
    stop,
    group: reward.map(() => 0),
    length: reward.map(() => 2),
  });
  for (const settings of [{}, { kl_coef: 0.1, kl_in: "advantage", kl_estimator: "k1" }]) {
    const choice = AlgorithmChoice.parse({ name: "grpo", mask_truncated: true, ...settings });
    const whole = AlgorithmChoice.parse({ name: "grpo", ...settings });
    strictEqual(hasSignal(choice, group([1, 0], ["stop", "length"])), true);
    strictEqual(hasSignal(choice, group([1, 0], ["length", "length"])), false);
    strictEqual(hasSignal(whole, group([1, 0], ["length", "length"])), true);
  }
  const choice = AlgorithmChoice.parse({ name: "grpo", mask_truncated: true });
  strictEqual(
    hasSignal(choice, group([1, 0.5, 0], ["length", "stop", "length"])),
    false,
    "its advantage is 0",
  );
});
