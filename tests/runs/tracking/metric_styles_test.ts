import { deepStrictEqual } from "node:assert/strict";
import { styled } from "../../../runs/tracking/metric_styles.ts";

const METRICS = {
  "reward/mean": 1,
  "reward/length/mean": 2,
  "policy/loss": 3,
  "eval/a/graded": 4,
};

Deno.test("styled() has a framework's names, and ours where it has none", () => {
  deepStrictEqual(styled(METRICS, "holdfast"), METRICS);
  deepStrictEqual(styled(METRICS, "trl"), {
    reward: 1,
    "rewards/length/mean": 2,
    loss: 3,
    "eval/a/graded": 4,
  });
  deepStrictEqual(styled(METRICS, "verl"), {
    "critic/rewards/mean": 1,
    "reward/length/mean": 2,
    "actor/pg_loss": 3,
    "eval/a/graded": 4,
  });
  deepStrictEqual(styled(METRICS, "openrlhf"), {
    reward: 1,
    "reward/length/mean": 2,
    policy_loss: 3,
    "eval/a/graded": 4,
  });
});

Deno.test("styled() never gives two of our metrics one name", () => {
  const ours = [
    ..."mean std zero_std_frac accuracy margin chosen rejected".split(" ").map((n) =>
      `reward/${n}`
    ),
    ..."kl_ref approx_kl clip_fraction entropy loss".split(" ").map((n) => `policy/${n}`),
    ..."grad_norm lr value_grad_norm value_lr".split(" ").map((n) => `optim/${n}`),
    ..."length_mean length_max truncated_frac".split(" ").map((n) => `completions/${n}`),
    "value/loss",
    "value/explained_variance",
    "perf/trained_tokens",
    "time/generate_s",
  ];
  const all = Object.fromEntries(ours.map((name, i) => [name, i]));
  for (const style of ["trl", "verl", "openrlhf"] as const) {
    deepStrictEqual(Object.values(styled(all, style)).toSorted((a, b) => a - b), [...ours.keys()]);
  }
});
