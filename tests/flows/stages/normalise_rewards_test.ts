import { deepStrictEqual, ok } from "node:assert/strict";
import { normaliseRewards } from "../../../flows/stages/normalise_rewards.ts";
import type { ScoredGroup } from "../../../flows/mod.ts";
import { RewardConfig } from "../../../rewards/mod.ts";
import { ArtifactStore } from "../../../engine/mod.ts";
import { ranAlone } from "./alone.ts";
import { scratch } from "../fixtures.ts";

const artifacts = new ArtifactStore(`${await scratch()}/artifacts`);
const REWARDS = [
  { name: "exact_match", label: "right", weight: 2 },
  { name: "length", label: "long", unit: "characters", max: 8, normalise: {}, clip: [-1, 0.5] },
].map((entry) => RewardConfig.parse(entry));

const group = (draw: number, long: (number | null)[], more: Partial<ScoredGroup> = {}) => ({
  id: `${draw}`,
  group: { draw, slab: { sha256: "0".repeat(64), bytes: 1 }, index: 0, samples: [0, 1] },
  sampled_at: 0,
  sampled_by: "v",
  rewards: [7, 7],
  parts: { right: [1, 0], long },
  lengths: [1, 2],
  stops: ["stop" as const, "length" as const],
  failed: null,
  detail: null,
  ...more,
});

async function normalised(input: object) {
  const stageInput = { rewards: REWARDS, running: {}, ...input } as never;
  const { outcome } = await ranAlone(normaliseRewards, stageInput, { artifacts, resources: [] });
  ok(outcome.status === "done", JSON.stringify(outcome));
  return outcome.output;
}

const rounded = (rewards: number[]) => rewards.map((one) => Number(one.toFixed(6)));

Deno.test("normaliseRewards() combines samples by the scores so far, the round's too", async () => {
  const failed = group(4, [9, 9], { failed: "reward_error", rewards: [1, 1] });
  const scored = [group(5, [null, null]), failed, group(3, [3, 3]), group(2, [1, 1])];
  const { scored: after, running, metrics } = await normalised({ scored });
  deepStrictEqual(running, { long: { count: 4, mean: 2, m2: 4 } });
  deepStrictEqual(after.map(({ group }) => group.draw), [2, 3, 4, 5], "in draw order");
  // By a deviation of 1, scores of 1 and 3 are -1 and 1, of which the limit leaves 0.5.
  deepStrictEqual(after.map(({ rewards }) => rounded(rewards)), [
    [1, -1],
    [2.5, 0.5],
    [1, 1],
    [2, 0],
  ]);
  deepStrictEqual(metrics["reward/mean"], 7, "as they were");
  deepStrictEqual(metrics["reward/long/running_mean"], 2);
});

Deno.test("normaliseRewards() continues from the round before, and shapes the result", async () => {
  const running = { long: { count: 2, mean: 1, m2: 0 } };
  const shaping = { truncated: { set: -3 } };
  const found = await normalised({ scored: [group(2, [3, 3])], running, shaping });
  deepStrictEqual(found.running, { long: { count: 4, mean: 2, m2: 4 } });
  deepStrictEqual(found.scored.map(({ rewards }) => rounded(rewards)), [[2.5, -3]]);
});
