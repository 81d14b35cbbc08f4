import { deepStrictEqual } from "node:assert/strict";
import { Numerics, Optimizer, type Policy } from "../../../data/mod.ts";
import { ArtifactStore, ManualClock } from "../../../engine/mod.ts";
import {
  type Caller,
  PolicyTrainer,
  type PolicyTrainerOptions,
  trainerRole,
} from "../../../workers/mod.ts";
import { FakeTrainer, writeFakeModel } from "../../../testing/mod.ts";

const optimizer = Optimizer.parse({ lr: 0.1 });
const LORA = { rank: 8, alpha: 16, dropout: 0, targets: "all_linear", quantize: null, seed: 1 };

/**
 * Versions that were trained with these numerics beside the fake ranks' own, and what the ranks
 * were asked.
 */
async function trained(unusual: Partial<Numerics>, options: { non_finite_max?: number } = {}) {
  const dir = await Deno.makeTempDir({ prefix: "step_numerics_" });
  const artifacts = new ArtifactStore(`${dir}/artifacts`);
  const recorded: PolicyTrainerOptions["recorded"] = [];
  const caller: Caller = { key: "k", attempt: 1, record: () => Promise.resolve() };
  const open = (numerics: Partial<Numerics>) => {
    const ranks = new FakeTrainer({ artifacts });
    const trainer = new PolicyTrainer({
      operator: ranks,
      artifacts,
      clock: new ManualClock(),
      recorded,
      checkpoints_dir: `${dir}/checkpoints`,
      numerics: async (tokens) => ({ ...await ranks.numerics(tokens), ...numerics }),
      ...options,
    });
    const callsOf = (op: string) =>
      ranks.calls.filter((call) => call.op === op).map((call) => call.args as object);
    return { trainer, callsOf };
  };
  const first = open(unusual);
  await writeFakeModel(`${dir}/model`, 0.5);
  const { policy: base, note } = await first.trainer.base(`${dir}/model`, optimizer, caller);
  recorded.push({ kind: "note/version", key: base.version, value: note });
  const batch = await artifacts.putJson({
    kind: "supervised",
    rows: [],
    temperature: 1,
    updates: [[0]],
  });
  const work = { policy: base, batch, loss: batch, optimizer, micro_batch_tokens_max: 64 };
  const step = await first.trainer.train(work, caller);
  recorded.push({ kind: "note/version", key: step.policy.version, value: step.note });
  const read = async ({ record }: Policy) =>
    await artifacts.getJson(record) as Record<string, unknown>;
  return {
    first,
    open,
    caller,
    dir,
    base: await read(base),
    record: await read(step.policy),
    policy: step.policy,
  };
}

Deno.test("a step receives its cut and its limit of skips, and records the cut", async () => {
  const { first, record, base } = await trained(
    { logits_chunk_tokens: 128, packing: true, lora: LORA },
    { non_finite_max: 5 },
  );
  const { logits_chunk_tokens, packing, non_finite_max } = first.callsOf("train")[0] as Record<
    string,
    unknown
  >;
  deepStrictEqual({ logits_chunk_tokens, packing, non_finite_max }, {
    logits_chunk_tokens: 128,
    packing: true,
    non_finite_max: 5,
  });
  const numerics = record.numerics as Record<string, unknown>;
  deepStrictEqual([numerics.logits_chunk_tokens, numerics.packing, numerics.lora], [
    128,
    true,
    LORA,
  ]);
  deepStrictEqual(base.lora, LORA);
});

Deno.test("a score and an evaluation meet the model as the steps do", async () => {
  const { first, policy, caller } = await trained({ logits_chunk_tokens: 128, packing: true });
  const work = { policy, batch: policy.record, micro_batch_tokens_max: 64 };
  await first.trainer.score({
    ...work,
    columns: ["old_logp"],
    reference_path: null,
    reference_offload: false,
  }, caller)
    .catch(() => undefined);
  await first.trainer.evaluate({ ...work, loss: policy.record }, caller).catch(() => undefined);
  for (const op of ["score", "evaluate"]) {
    const { logits_chunk_tokens, packing } = first.callsOf(op)[0] as Record<string, unknown>;
    deepStrictEqual([logits_chunk_tokens, packing], [128, true], op);
  }
});

Deno.test("a step and a base record everything that their ids depend on", async () => {
  const { first, record, base } = await trained({});
  const stepArguments = trainerRole.operations.train.args.parse(first.callsOf("train")[0]);
  deepStrictEqual([
    stepArguments.logits_chunk_tokens,
    stepArguments.packing,
    stepArguments.non_finite_max,
  ], [
    4096,
    false,
    null,
  ]);
  deepStrictEqual(
    Object.keys(record.numerics as object).toSorted(),
    Object.keys(Numerics.shape).toSorted(),
  );
  deepStrictEqual([base.head, base.lora], [null, null]);
});

Deno.test("a redo uses the recorded cut and has no limit of skipped steps", async () => {
  const { open, policy, caller, dir } = await trained(
    { logits_chunk_tokens: null, packing: true },
    {
      non_finite_max: 2,
    },
  );
  const later = open({ logits_chunk_tokens: 77 });
  await later.trainer.publish(policy, `${dir}/out`, caller);
  const { logits_chunk_tokens, packing, non_finite_max } = later.callsOf("train")[0] as Record<
    string,
    unknown
  >;
  deepStrictEqual([logits_chunk_tokens, packing, non_finite_max], [null, true, null]);
});
