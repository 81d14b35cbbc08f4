import { deepStrictEqual, notStrictEqual, strictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import type { ArtifactRef, Batch, Policy } from "../../../data/mod.ts";
import { graph } from "../../../engine/mod.ts";
import { learned } from "../../../flows/learner.ts";
import { rewardParts, type ScoredGroup } from "../../../flows/mod.ts";
import { online } from "../../../flows/online.ts";
import { RewardConfig } from "../../../rewards/mod.ts";
import { FakeSampler } from "../../../testing/mod.ts";
import { execute, onlineConfig, stores } from "../fixtures.ts";

type Trajectories = Extract<Batch, { kind: "trajectories" }>;

const slab = { sha256: "0".repeat(64), bytes: 1 };

function scored(draw: number, parts: Record<string, (number | null)[]>): ScoredGroup {
  const samples = Object.values(parts)[0]!.map((_, i) => i);
  return {
    id: `draw-${draw}`,
    group: { draw, slab, index: 0, samples },
    sampled_at: 0,
    sampled_by: "v",
    rewards: samples.map(() => 0),
    parts,
    lengths: samples.map(() => 1),
    stops: samples.map(() => "stop"),
    failed: null,
    detail: null,
  };
}

const REWARDS = [
  { name: "gsm8k", weight: 2 },
  { name: "format", pattern: "x", weight: 0.5, when: "gsm8k" },
  { name: "length", max: 10, weight: -1, when: "format" },
].map((reward) => RewardConfig.parse(reward));

Deno.test("rewardParts() has each reward's pay by sample, 0 where its condition fails", () => {
  const groups = [
    scored(0, { gsm8k: [1, 0], "gsm8k/other": [5, 5], format: [1, 1], length: [0.2, 0.4] }),
    scored(1, { gsm8k: [null, 1, 1], format: [1, 0, null], length: [0.1, 0.5, 0.5] }),
  ];
  deepStrictEqual(rewardParts(groups, REWARDS), [
    { name: "gsm8k", weight: 2, paid: [1, 0, null, 1, 1] },
    { name: "format", weight: 0.5, paid: [1, 0, null, 0, null] },
    { name: "length", weight: -1, paid: [0.2, 0.4, null, 0, null] },
  ]);
});

Deno.test("rewardParts() adds an environment's token rewards as one reward more", () => {
  const parts = rewardParts([scored(0, { gsm8k: [1, 0] })], REWARDS.slice(0, 1), [[1, 2], []]);
  deepStrictEqual(parts[1], { name: "environment", weight: 1, paid: [3, 0] });
});

Deno.test("rewardParts() has null for a reward that a record does not have", () => {
  const parts = rewardParts([scored(0, { gsm8k: [1, 0] })], REWARDS);
  deepStrictEqual(parts.map(({ paid }) => paid), [[1, 0], [null, null], [null, null]]);
});

Deno.test("learned() passes each reward to an algorithm that reads them", async () => {
  const reward = [
    { name: "length", label: "long", max: 8 },
    { name: "length", label: "short", max: 8, prefer: "short", weight: 0.5 },
  ];
  const advantages = await Promise.all(["gdpo", "grpo"].map(async (name) => {
    const home = await stores();
    const config = onlineConfig(home.model, { algorithm: { name }, reward, rounds: 1 });
    const { outcome } = await execute(online, config, { ...home, samplers: [new FakeSampler()] });
    strictEqual(outcome.status, "done", JSON.stringify(outcome));
    const row = home.store.rows("run").find(({ kind, key }) =>
      kind === "result" && key.endsWith("/assign_credit")
    )!;
    const { output } = JSON.parse(row.value) as { output: { batch: ArtifactRef } };
    const { columns } = await home.artifacts.getJson(output.batch) as Trajectories;
    return (columns.advantage as { values: number[] }).values.map((a) => a.toFixed(6));
  }));
  notStrictEqual(advantages[0]!.join(), advantages[1]!.join());
});

Deno.test("learned() refuses a custom graph that does not pass the rewards", async () => {
  const { model } = await stores();
  const { reward: _, ...config } = onlineConfig(model, { algorithm: { name: "gdpo" } });
  const bare = graph("bare", z.strictObject({}), (g) => {
    const policy = g.constant<Policy>(null as never);
    return learned(g, config, { scored: g.constant([]), policy, reference: policy }).policy;
  });
  throws(() => bare.build({}), {
    message: "Cannot train with 'gdpo' because it reads each reward by itself, and the " +
      "configuration has no `reward`. Fix: pass the whole configuration to `learned`",
  });
});
