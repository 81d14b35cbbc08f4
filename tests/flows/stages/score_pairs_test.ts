import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { Batch, decodeColumn, type ScoredColumn } from "../../../data/mod.ts";
import { drawEvaluationPairs, scorePairs } from "../../../flows/mod.ts";
import { writeFakeModel } from "../../../testing/mod.ts";
import { fakeBench } from "./alone.ts";
import { pairsOf } from "../preference_fixtures.ts";

const pairs = pairsOf(3);
const data = { split: "eval", rows: 3, digest: pairs.digest };

/** What the stage makes of three pairs, and what it asks the trainer. */
async function scored(columns: ScoredColumn[]) {
  const bench = await fakeBench(() => ({ rows: { eval: pairs } }));
  const path = `${bench.dir}/reference`;
  await writeFakeModel(path, 0.25);
  const policy = await bench.start();
  const batch = await bench.done(drawEvaluationPairs, { data, count: null });
  const reference = { path, offload: true };
  const input = { batch, policy, reference, columns, micro_batch_tokens_max: 64 };
  const output = await bench.done(scorePairs, input);
  const requests = bench.trainer.calls.filter(({ op }) => op === "score").map(({ args }) =>
    args as Record<string, unknown>
  );
  return { ...bench, batch, output, policy, path, requests };
}

Deno.test("scorePairs() returns the batch itself if its loss reads no column", async () => {
  const { batch, output, trainer } = await scored([]);
  deepStrictEqual(output, batch);
  deepStrictEqual(trainer.calls.map(({ op }) => op), ["inspect_model"]);
});

Deno.test("scorePairs() adds the columns, one row for each side, and changes no more", async () => {
  const { artifacts, batch, output } = await scored(["ref_logp"]);
  const [before, after] = [
    Batch.parse(await artifacts.getJson(batch)),
    Batch.parse(await artifacts.getJson(output)),
  ];
  ok(after.kind === "preference");
  deepStrictEqual({ ...after, columns: {} }, before);
  const { ref_logp, ...others } = after.columns;
  ok(ref_logp?.kind === "token");
  deepStrictEqual(others, {});
  const rows = decodeColumn(await artifacts.get(ref_logp.artifact));
  const letters = ["good", "bad"].map((word) => "say 0".length + `0 ${word}`.length);
  deepStrictEqual(rows.map(({ length }) => length), [letters, letters, letters].flat());
});

Deno.test("scorePairs() scores with the policy and the reference that it was given", async () => {
  const { requests, batch, path, policy } = await scored(["old_logp", "ref_logp"]);
  // The second time because the first found nothing resident.
  strictEqual(requests.length, 2);
  const { version, columns, reference_path, reference_offload, micro_batch_tokens_max } =
    requests[1]!;
  deepStrictEqual(
    { version, columns, reference_path, reference_offload, micro_batch_tokens_max },
    {
      version: policy.version,
      columns: ["old_logp", "ref_logp"],
      reference_path: path,
      reference_offload: true,
      micro_batch_tokens_max: 64,
    },
  );
  deepStrictEqual(requests[1]!.batch, batch);
});
