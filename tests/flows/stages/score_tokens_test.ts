import { deepStrictEqual, strictEqual } from "node:assert/strict";
import {
  Batch,
  decodeColumn,
  encodeSlab,
  type Group,
  Optimizer,
  Sampling,
  type ScoredColumn,
  type Trajectory,
} from "../../../data/mod.ts";
import { prepareCritic, type ScoredGroup, scoreTokens, scoreValues } from "../../../flows/mod.ts";
import { writeFakeModel } from "../../../testing/mod.ts";
import { type FakeBench, fakeBench } from "./alone.ts";

const optimizer = Optimizer.parse({ lr: 0.1 });

/** A trajectory of two tokens that its sampler gave -(draw + 1). */
const trajectory = (draw: number, sample: number): Trajectory => ({
  sample,
  tokens: Int32Array.of(draw, sample),
  action_mask: Uint8Array.of(0, 1),
  behaviour_logp: Float32Array.of(0, -(draw + 1)),
  versions: [],
  stop: "stop",
  text: "",
});

/** Two samples of a draw, of which `samples` are left. */
async function group(
  { artifacts }: FakeBench,
  draw: number,
  more: Partial<ScoredGroup> = {},
): Promise<ScoredGroup> {
  const trajectories = [trajectory(draw, 0), trajectory(draw, 1)];
  const slabGroup: Group = { draw, row_id: "row", prompt_text: "", trajectories };
  const sampling = Sampling.parse({ temperature: 1, top_p: 1, top_k: -1, tokens_max: 8, stop: [] });
  const slab = await artifacts.put(
    encodeSlab({ slab: "s", version: "v", sampling, groups: [slabGroup] }),
  );
  return {
    id: `draw-${draw}`,
    group: { draw, slab, index: 0, samples: [0, 1] },
    sampled_at: 0,
    sampled_by: "v",
    rewards: [0, 1],
    parts: {},
    lengths: [1, 1],
    stops: ["stop", "stop"],
    failed: null,
    detail: null,
    ...more,
  };
}

async function tokensInput(bench: FakeBench, columns: ScoredColumn[], scored: ScoredGroup[]) {
  const policy = await bench.start();
  const reference = policy;
  const micro_batch_tokens_max = 64;
  return { scored, policy, reference, columns, temperature: 0.5, micro_batch_tokens_max };
}

/** What the trainer was asked to score, the last time. */
function lastRequest({ calls }: FakeBench["trainer"]): Record<string, unknown> {
  return calls.findLast(({ op }) => op === "score")!.args as Record<string, unknown>;
}

Deno.test("scoreTokens() scores what is left of the round, in draw order", async () => {
  const bench = await fakeBench();
  const one = await group(bench, 1);
  const reduced = { ...one, group: { ...one.group, samples: [1] } };
  const failed = await group(bench, 0, { failed: "reward_error" });
  const groups = [await group(bench, 2), failed, reduced];
  const scores = await bench.done(scoreTokens, await tokensInput(bench, ["old_logp"], groups));
  deepStrictEqual(Object.keys(scores), ["old_logp"]);
  const rows = decodeColumn(await bench.artifacts.get(scores.old_logp!));
  deepStrictEqual(rows.map(({ length }) => length), [2, 2, 2]);
  const batch = await bench.artifacts.getJson(lastRequest(bench.trainer).batch as never);
  deepStrictEqual(Batch.parse(batch), {
    kind: "trajectories",
    groups: [reduced.group, groups[0]!.group],
    columns: {},
    staleness: [],
    temperature: 0.5,
    coef: {},
    updates: [[0, 1]],
  });
});

Deno.test("scoreTokens() asks for nothing but log-probabilities", async () => {
  const bench = await fakeBench();
  const groups = [await group(bench, 0)];
  const both = await tokensInput(bench, ["values", "ref_logp", "bootstrap", "old_logp"], groups);
  await bench.done(scoreTokens, both);
  deepStrictEqual(lastRequest(bench.trainer).columns, ["ref_logp", "old_logp"]);
  const calls = bench.trainer.calls.length;
  deepStrictEqual(await bench.done(scoreTokens, { ...both, columns: ["values"] }), {});
  const scored = [await group(bench, 0, { failed: "reward_error" })];
  deepStrictEqual(await bench.done(scoreTokens, { ...both, scored }), {});
  strictEqual(bench.trainer.calls.length, calls);
});

Deno.test("scoreTokens() reads the reference's weights for ref_logp", async () => {
  const bench = await fakeBench();
  await writeFakeModel(`${bench.dir}/other`, 0.25);
  const input = await tokensInput(bench, ["ref_logp"], [await group(bench, 0)]);
  const reference = { ...input.reference, model_path: `${bench.dir}/other` };
  await bench.done(scoreTokens, { ...input, reference, reference_offload: true });
  const { reference_path, reference_offload } = lastRequest(bench.trainer);
  deepStrictEqual([reference_path, reference_offload], [`${bench.dir}/other`, true]);
  await bench.done(scoreTokens, input);
  strictEqual(lastRequest(bench.trainer).reference_offload, false);
});

Deno.test("scoreTokens() reads a refreshed reference's files only for ref_logp", async () => {
  const bench = await fakeBench();
  const first = await tokensInput(bench, ["old_logp"], [await group(bench, 0)]);
  const refreshed = `${bench.dir}/run/references/${first.reference.version.slice(0, 16)}`;
  await writeFakeModel(refreshed, 0.25);
  const input = { ...first, reference: { ...first.reference, number: 1 } };
  await bench.done(scoreTokens, input);
  strictEqual(lastRequest(bench.trainer).reference_path, bench.model);
  await bench.done(scoreTokens, { ...input, columns: ["old_logp", "ref_logp"] });
  strictEqual(lastRequest(bench.trainer).reference_path, refreshed);
});

Deno.test("scoreTokens() scores other columns if an older version sampled a group", async () => {
  const bench = await fakeBench();
  const groups = [await group(bench, 0, { sampled_at: 1 }), await group(bench, 1)];
  const first = await tokensInput(bench, ["ref_logp"], groups);
  const policy = { ...first.policy };
  const stale_columns: ScoredColumn[] = ["old_logp"];
  await bench.done(scoreTokens, { ...first, policy, stale_columns });
  deepStrictEqual(
    lastRequest(bench.trainer).columns,
    ["ref_logp"],
    "its number is 0: none is older",
  );
  const later = { ...first, policy: { ...policy, number: 2 }, stale_columns };
  await bench.done(scoreTokens, later);
  deepStrictEqual(lastRequest(bench.trainer).columns, ["old_logp"]);
  await bench.done(scoreTokens, { ...later, stale_columns: undefined });
  deepStrictEqual(lastRequest(bench.trainer).columns, ["ref_logp"]);
});

Deno.test("scoreTokens() takes an older version's old_logp from its sampler if asked", async () => {
  const bench = await fakeBench();
  const groups = [
    await group(bench, 0, { sampled_at: 1 }),
    await group(bench, 1, { sampled_at: 2 }),
    await group(bench, 2, { sampled_at: 2 }),
  ];
  const first = await tokensInput(bench, ["old_logp"], groups);
  const input = { ...first, policy: { ...first.policy, number: 2 } };
  const rows = async (more: Partial<typeof input> & { stale_old_logp?: "behaviour" }) => {
    const { old_logp } = await bench.done(scoreTokens, { ...input, ...more });
    return decodeColumn(await bench.artifacts.get(old_logp!)).map((row) => [...row]);
  };
  const plain = await rows({});
  const sampled = [[0, -1], [0, -1], ...plain.slice(2)];
  deepStrictEqual(await rows({ stale_old_logp: "behaviour" }), sampled);
  const fresh = { scored: groups.slice(1), stale_old_logp: "behaviour" } as const;
  deepStrictEqual(await rows(fresh), plain.slice(2));
});

Deno.test("scoreValues() asks the value model for all but log-probabilities", async () => {
  const bench = await fakeBench();
  const critic = await bench.done(prepareCritic, { model_path: bench.model, optimizer });
  const scored = [await group(bench, 0), await group(bench, 1, { failed: "reward_error" })];
  const columns: ScoredColumn[] = ["old_logp", "values", "bootstrap"];
  const input = { scored, critic, columns, micro_batch_tokens_max: 64 };
  const scores = await bench.done(scoreValues, input);
  deepStrictEqual(Object.keys(scores).toSorted(), ["bootstrap", "values"]);
  const { version, reference_path, batch } = lastRequest(bench.critic);
  deepStrictEqual([version, reference_path], [critic.version, null]);
  const read = Batch.parse(await bench.artifacts.getJson(batch as never));
  deepStrictEqual([read.temperature, read.updates], [1, [[0]]]);
  deepStrictEqual(await bench.done(scoreValues, { ...input, columns: ["old_logp"] }), {});
  deepStrictEqual(await bench.done(scoreValues, { ...input, scored: scored.slice(1) }), {});
  strictEqual(bench.trainer.calls.length, 0);
});
