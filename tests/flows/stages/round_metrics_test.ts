import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { roundMetrics } from "../../../flows/stages/round_metrics.ts";
import type { ScoredGroup } from "../../../flows/mod.ts";

function group(rewards: number[], overrides: Partial<ScoredGroup> = {}): ScoredGroup {
  return {
    id: "draw-0",
    group: { draw: 0, slab: { sha256: "0".repeat(64), bytes: 1 }, index: 0, samples: [0] },
    sampled_at: 0,
    sampled_by: "v",
    rewards,
    parts: {},
    lengths: rewards.map(() => 2),
    stops: rewards.map(() => "stop"),
    failed: null,
    detail: null,
    ...overrides,
  };
}

Deno.test("roundMetrics() of no sample is empty", () => {
  deepStrictEqual(roundMetrics([]), {});
  deepStrictEqual(roundMetrics([group([])]), {});
});

Deno.test("roundMetrics() counts every sample alike, whatever its group", () => {
  const metrics = roundMetrics([group([1, 1, 1]), group([5])]);
  deepStrictEqual([metrics["reward/mean"], metrics["reward/std"]], [2, Math.sqrt(3)]);
});

Deno.test("roundMetrics() gives the share of groups whose rewards are all the same", () => {
  const metrics = roundMetrics([group([1, 1]), group([0, 1]), group([1, 0]), group([0, 0])]);
  strictEqual(metrics["reward/zero_std_frac"], 0.5);
});

Deno.test("roundMetrics() gives lengths, and the share of completions that were cut", () => {
  const metrics = roundMetrics([group([0, 1], { lengths: [1, 9], stops: ["length", "stop"] })]);
  deepStrictEqual(
    ["length_mean", "length_max", "truncated_frac"].map((name) => metrics[`completions/${name}`]),
    [5, 9, 0.5],
  );
});

Deno.test("roundMetrics() takes a reward's mean over the groups that have it", () => {
  const metrics = roundMetrics([
    group([1, 2], { parts: { right: [0, 1], brevity: [4, 4] } }),
    group([3], { parts: { right: [1] } }),
  ]);
  deepStrictEqual([metrics["reward/right/mean"], metrics["reward/brevity/mean"]], [2 / 3, 4]);
});

Deno.test("roundMetrics() means a part over samples it applies to, and counts the others", () => {
  const parts: ScoredGroup["parts"] = { judge: [1, null], "judge/steps": [3, null], all: [1, 1] };
  const metrics = roundMetrics([
    group([1, 1], { parts }),
    group([1], { parts: { judge: [null] } }),
  ]);
  const shown = Object.entries(metrics).filter(([name]) => /judge|all/.test(name));
  deepStrictEqual(Object.fromEntries(shown), {
    "reward/judge/mean": 1,
    "reward/judge/none_frac": 2 / 3,
    "reward/judge/steps/mean": 3,
    "reward/all/mean": 1,
  });
  const nothing = roundMetrics([group([1], { parts: { judge: [null] } })]);
  deepStrictEqual(["reward/judge/mean" in nothing, nothing["reward/judge/none_frac"]], [false, 1]);
});
