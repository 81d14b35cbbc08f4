import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { AlgorithmChoice } from "../../../algs/mod.ts";
import { Batch, decodeColumn, encodeColumn, encodeSlab, Sampling } from "../../../data/mod.ts";
import { ArtifactStore, Engine, graph } from "../../../engine/mod.ts";
import { MemoryStore } from "../../../testing/mod.ts";
import { assignCredit, type ScoredGroup, untrainedText } from "../../../flows/mod.ts";
import { RewardConfig } from "../../../rewards/mod.ts";
import { scratch } from "../fixtures.ts";

const artifacts = new ArtifactStore(await scratch());
const slab = { sha256: "0".repeat(64), bytes: 1 };

function scored(draw: number, rewards: number[], failed: string | null = null): ScoredGroup {
  const samples = rewards.map((_, i) => i);
  return {
    id: `draw-${draw}`,
    group: { draw, slab, index: 0, samples },
    sampled_at: 0,
    sampled_by: "v",
    rewards,
    parts: { right: rewards },
    lengths: rewards.map(() => 3),
    stops: rewards.map((_, i) => (i === 0 ? "length" : "stop")),
    failed,
    detail: failed === null ? null : "picky: the row is broken",
  };
}

async function credit(
  groups: ScoredGroup[],
  options: {
    failed_fraction_max?: number;
    updates_per_batch?: number;
    rewards?: RewardConfig[];
  } = {},
  settings: AlgorithmChoice = { name: "grpo", kl_coef: 0 } as AlgorithmChoice,
) {
  const input = {
    scored: groups,
    tokens: {},
    algorithm: AlgorithmChoice.parse(settings),
    temperature: 1,
    updates_per_batch: 1,
    epochs_per_batch: 1,
    policy_number: 0,
    failed_fraction_max: 0.5,
    ...options,
  };
  const metrics: Record<string, number> = {};
  const total: Record<string, number> = {};
  const logs: string[] = [];
  const engine = new Engine({
    store: new MemoryStore(),
    artifacts,
    onEvent: (event) => {
      if (event.type === "metrics") Object.assign(metrics, event.metrics);
      if (event.type === "log") logs.push(event.text);
      if (event.type === "round_closed") Object.assign(total, event.total);
    },
  });
  const one = graph("one", z.strictObject({}), (g) => {
    const start = g.constant<unknown>(null);
    return g.loop(
      "round",
      { times: 1, carry: { credit: start } },
      (r) => ({ credit: r.stage(assignCredit, input) }),
    )
      .credit;
  });
  await engine.create(one, {}, { id: "run" });
  const outcome = await engine.execute("run", one.build({}));
  if (outcome.status !== "done") {
    return { error: outcome.status === "failed" ? outcome.error : null, metrics, total };
  }
  const credited = outcome.output as { batch: Parameters<ArtifactStore["getJson"]>[0] | null };
  const batch = credited.batch === null
    ? null
    : Batch.parse(await artifacts.getJson(credited.batch));
  return {
    output: credited,
    batch: batch as Extract<Batch, { kind: "trajectories" }> | null,
    metrics,
    total,
    logs,
  };
}

Deno.test("assign_credit orders groups by draw and gives samples advantages", async () => {
  const { batch, total } = await credit([scored(5, [0, 1]), scored(2, [1, 0, 1])]);
  deepStrictEqual(batch!.groups.map(({ draw }) => draw), [2, 5]);
  const advantage = batch!.columns.advantage as { values: number[] };
  strictEqual(advantage.values.length, 5);
  ok(
    advantage.values[0]! > 0 && advantage.values[1]! < 0 && advantage.values[3]! < 0 &&
      advantage.values[4]! > 0,
  );
  deepStrictEqual(total, { trained: 2 });
});

Deno.test("assign_credit leaves out failed groups and counts them by reason", async () => {
  const groups = [scored(0, [0, 1]), scored(1, [], "reward_timeout"), scored(2, [1, 0])];
  const { batch, total, metrics } = await credit(groups);
  deepStrictEqual(batch!.groups.map(({ draw }) => draw), [0, 2]);
  deepStrictEqual(total, { trained: 2, "failed.reward_timeout": 1 });
  strictEqual(metrics["reward/mean"], 0.5);
});

Deno.test("assign_credit makes no batch without a nonzero advantage", async () => {
  const { batch, total, metrics } = await credit([scored(0, [1, 1]), scored(1, [0, 0])]);
  deepStrictEqual([batch, total], [null, { "filtered.zero_advantage": 2 }]);
  strictEqual(metrics["reward/zero_std_frac"], 1);
});

Deno.test("assign_credit makes no batch if every group failed", async () => {
  const { batch, total } = await credit([scored(0, [], "reward_error")], {
    failed_fraction_max: 1,
  });
  deepStrictEqual([batch, total], [null, { "failed.reward_error": 1 }]);
});

Deno.test("assign_credit names the first failure above failed_fraction_max", async () => {
  const groups = [scored(0, [0, 1]), scored(1, [], "reward_error"), scored(2, [], "reward_error")];
  const { error } = await credit(groups, { failed_fraction_max: 0.5 });
  match(
    error!.message,
    /2 of 3 groups failed.*failed_fraction_max.*draw 1.*reward_error.*picky: the row is broken/,
  );
  strictEqual((await credit(groups, { failed_fraction_max: 0.67 })).error, undefined);
});

Deno.test("assign_credit cuts whole groups into updates and emits metrics", async () => {
  const { batch, metrics } = await credit([0, 1, 2].map((draw) => scored(draw, [draw, 1])), {
    updates_per_batch: 2,
  });
  deepStrictEqual(batch!.updates, [[0], [1, 2]]);
  deepStrictEqual(
    [metrics["reward/mean"], metrics["reward/right/mean"], metrics["completions/truncated_frac"]],
    [1, 1, 0.5],
  );
});

const MASKING = { name: "grpo", mask_truncated: true, kl_coef: 0 } as AlgorithmChoice;

/** `scored`, with these samples cut. */
function withCut(group: ScoredGroup, ...places: number[]): ScoredGroup {
  return { ...group, stops: group.stops.map((_, i) => (places.includes(i) ? "length" : "stop")) };
}

Deno.test("assign_credit compares with masked completions and counts them", async () => {
  const groups = [withCut(scored(0, [1, 0, 0]), 2), withCut(scored(1, [0, 1]), 0)];
  const whole = await credit(groups);
  const { batch, total, metrics } = await credit(groups, {}, MASKING);
  deepStrictEqual(batch, { ...whole.batch, masked: [2, 3] });
  deepStrictEqual([total, metrics["completions/masked"]], [{ trained: 2 }, 2]);
  strictEqual("completions/masked" in whole.metrics, false);
  deepStrictEqual(
    (await credit([withCut(scored(0, [1, 0]))], {}, MASKING)).batch!.masked,
    undefined,
  );
});

Deno.test("assign_credit leaves out a step whose completions are all masked", async () => {
  const groups = [
    withCut(scored(0, [1, 0])),
    withCut(scored(1, [1, 0]), 0, 1),
    withCut(scored(2, [1, 0]), 1),
  ];
  const { batch, total, logs } = await credit(groups, { updates_per_batch: 3 }, MASKING);
  deepStrictEqual([batch!.updates, batch!.masked], [[[0], [2]], [2, 3, 5]]);
  deepStrictEqual(total, { trained: 2, "filtered.truncated": 1 });
  deepStrictEqual(logs, [
    "1 of 3 optimizer steps are skipped: mask_truncated leaves nothing to train on",
  ]);
});

Deno.test("assign_credit takes no step if all that has an advantage is masked", async () => {
  const cut = withCut(scored(0, [1, 0]), 0, 1);
  const { batch, total } = await credit([cut, withCut(scored(1, [1, 1]), 0)], {}, MASKING);
  deepStrictEqual([batch, total], [null, {
    "filtered.truncated": 1,
    "filtered.zero_advantage": 1,
  }]);
  strictEqual(
    untrainedText({ read: 2, ...total }),
    "no step was taken because none of 2 groups had an advantage in a completion that is not " +
      "masked " +
      "(truncated 1, zero_advantage 1)",
  );
  const half = withCut(scored(0, [1, 0.5, 0]), 0, 2); // What is left has advantage 0.
  deepStrictEqual((await credit([half], {}, MASKING)).batch, null);
});

Deno.test("what tokens earn is credit of an algorithm by token, and a sum for others", async () => {
  const sampling = Sampling.parse({});
  const trajectories = [0, 1].map((sample) => ({
    sample,
    tokens: Int32Array.from([1, 2, 3, 4]),
    action_mask: Uint8Array.from([0, 1, 1, 1]),
    behaviour_logp: new Float32Array(4),
    versions: [],
    stop: "stop" as const,
    text: "",
  }));
  const group = { draw: 0, row_id: "r", prompt_text: "", trajectories };
  const slab = await artifacts.put(
    encodeSlab({ slab: "s", version: "v", sampling, groups: [group] }),
  );
  const whole = scored(0, [1, 4]);
  const token_scores = await artifacts.put(
    encodeColumn([Float32Array.from([0, 1, 0, 0]), Float32Array.from([0, 2, 2, 0])]),
  );
  const scoredGroup = { ...whole, group: { ...whole.group, slab }, token_scores };
  const assigned = async (scoredGroup: ScoredGroup, settings: object) => {
    const { batch } = await credit([scoredGroup], {}, settings as AlgorithmChoice);
    const column = batch!.columns.advantage!;
    if (column.kind === "sequence") return column.values;
    return decodeColumn(await artifacts.get(column.artifact)).map((row) => [...row]);
  };
  const by_token = { name: "reinforce", baseline: "none" };
  deepStrictEqual(await assigned(scoredGroup, by_token), [[0, 1, 0, 0], [0, 4, 2, 0]]);
  const { token_scores: _, ...untold } = scoredGroup;
  deepStrictEqual(await assigned(untold, by_token), [[0, 1, 1, 1], [0, 4, 4, 4]]);
  const summed = { name: "grpo", kl_coef: 0 };
  deepStrictEqual(await assigned(scoredGroup, summed), await assigned(untold, summed));
});

Deno.test("assign_credit gives GDPO each reward by itself", async () => {
  const parts = { exact_match: [1, 0], length: [0, 1] };
  const groups = [
    { ...scored(0, [1, 1]), parts },
    { ...scored(1, [1, 0]), parts: { exact_match: [1, 0], length: [1, 1] } },
  ];
  const rewards = [{ name: "exact_match", weight: 3 }, { name: "length", max: 10 }]
    .map((reward) => RewardConfig.parse(reward));
  const gdpo = { name: "gdpo", std_epsilon: 0 } as AlgorithmChoice;
  const { batch } = await credit(groups, { rewards }, gdpo);
  const { values } = batch!.columns.advantage as { values: number[] };
  // Sums 3√½ − √½ and 3√½, of both signs.
  const deviation = Math.sqrt((2 * 2 + 2 * 4.5) / 3);
  const expected = [Math.SQRT2, -Math.SQRT2, 3 * Math.SQRT1_2, -3 * Math.SQRT1_2];
  values.forEach((value, i) => ok(Math.abs(value - expected[i]! / deviation) < 1e-12, `${values}`));
});
