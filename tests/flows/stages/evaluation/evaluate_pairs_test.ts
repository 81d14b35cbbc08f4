import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { AlgorithmChoice } from "../../../../algs/mod.ts";
import type { RecordedMetrics } from "../../../../engine/mod.ts";
import { drawEvaluationPairs, evaluatePairs } from "../../../../flows/mod.ts";
import { lossOf } from "../../../../flows/stages/train_policy.ts";
import { FakeTrainer } from "../../../../testing/mod.ts";
import { type FakeBench, fakeBench, valuesOf } from "../alone.ts";
import { pairsOf } from "../../preference_fixtures.ts";

const eval_rows = pairsOf(3);
const algorithm = AlgorithmChoice.parse({ name: "dpo" });

/** A trainer whose evaluations have these metrics. */
class Telling extends FakeTrainer {
  metrics: Record<string, number> = { "reward/accuracy": 0.75, "reward/margin": 1.5 };

  protected override async operate(
    op: string,
    work: { args: unknown; blobs: Uint8Array[] },
  ): Promise<unknown> {
    const answer = await super.operate(op, work) as object;
    if (op !== "evaluate" || "not_resident" in answer) return answer;
    return { ...answer, loss: 0.5, metrics: this.metrics };
  }
}

async function telling(metrics?: Record<string, number>): Promise<FakeBench> {
  return await fakeBench((artifacts) => {
    const trainer = new Telling({ artifacts });
    if (metrics) trainer.metrics = metrics;
    return { rows: { eval: eval_rows }, trainer };
  });
}

async function inputOf({ done, start }: FakeBench) {
  const data = { split: "eval", rows: 3, digest: eval_rows.digest };
  const batch = await done(drawEvaluationPairs, { data, count: null });
  const policy = await start();
  return { name: "before", batch, policy, algorithm, micro_batch_tokens_max: 64 };
}

Deno.test("evaluatePairs() returns the loss's accuracy and margin, and the policy", async () => {
  const bench = await telling();
  const input = await inputOf(bench);
  const { outcome, rows } = await bench.ran(evaluatePairs, input);
  const evaluation = { name: "before", pairs: 3, loss: 0.5, pair_accuracy: 0.75, pair_margin: 1.5 };
  ok(outcome.status === "done");
  deepStrictEqual(outcome.output, { policy: input.policy, evaluation });
  deepStrictEqual(valuesOf(rows, "note/evaluation"), { before: evaluation });
});

for (const [set, under] of [[undefined, "eval"], ["held_out", "eval/held_out"]] as const) {
  Deno.test(`evaluatePairs() tells metrics of ${set ?? "the only set"} as ${under}`, async () => {
    const bench = await telling();
    const input = await inputOf(bench);
    const { rows } = await bench.ran(evaluatePairs, { ...input, ...(set && { set }) });
    const [{ metrics, version }] = Object.values(valuesOf(rows, "metrics")) as [RecordedMetrics];
    deepStrictEqual(metrics, { [`${under}/pair_accuracy`]: 0.75, [`${under}/pair_margin`]: 1.5 });
    strictEqual(version, input.policy.version);
  });
}

Deno.test("evaluatePairs() asks for the algorithm's loss on the policy's weights", async () => {
  const bench = await telling();
  const input = await inputOf(bench);
  await bench.done(evaluatePairs, input);
  const request = bench.trainer.calls.at(-1)!.args as {
    version: string;
    loss: { sha256: string; bytes: number };
  };
  strictEqual(request.version, input.policy.version);
  deepStrictEqual(new Uint8Array(await bench.artifacts.get(request.loss)), lossOf(algorithm));
});

Deno.test("evaluatePairs() names what a loss that tells no pairs apart gives instead", async () => {
  const others: [Record<string, number>, string][] = [
    [{ entropy: 1, "reward/margin": 2 }, "entropy, reward/margin"],
    [{ "reward/accuracy": 1 }, "reward/accuracy"],
    [{}, "none"],
  ];
  for (const [metrics, text] of others) {
    const bench = await telling(metrics);
    const { outcome } = await bench.ran(evaluatePairs, await inputOf(bench));
    ok(outcome.status === "failed");
    strictEqual(
      outcome.error.message,
      "Cannot finish 'evaluate_pairs' after 1 attempt(s): TypeError: Cannot evaluate on pairs " +
        "because the loss of 'dpo' does not report 'reward/accuracy' and 'reward/margin': " +
        `its metrics are ${text}`,
    );
  }
});
