import { deepStrictEqual, notStrictEqual, ok, strictEqual } from "node:assert/strict";
import { type Batch, type Row, tableOf } from "../../data/mod.ts";
import { type MemoryStore, writeFakeModel } from "../../testing/mod.ts";
import { preference } from "../../flows/preference.ts";
import { runView } from "../../runs/mod.ts";
import type { PairEvaluation } from "../../flows/stages/evaluation/evaluate_pairs.ts";
import { execute, rowsOf, scratch, stores } from "./fixtures.ts";
import { pairsOf, preferenceConfig } from "./preference_fixtures.ts";

type Pairs = Extract<Batch, { kind: "preference" }>;
const ROWS = { train: pairsOf(6), eval: pairsOf(5) };

async function ran(overrides: Record<string, unknown> = {}) {
  const places = await stores();
  const executed = await execute(preference, preferenceConfig(places.model, overrides), {
    ...places,
    rows: ROWS,
  });
  strictEqual(executed.outcome.status, "done", JSON.stringify(executed.outcome));
  const { store, artifacts } = places;
  const steps = executed.trainer.calls.filter(({ op }) => op === "train")
    .map(({ args }) => args as { batch: { sha256: string; bytes: number } });
  const batches = await Promise.all(
    steps.map(({ batch }) => artifacts.getJson(batch) as Promise<Pairs>),
  );
  const view = await runView(store, (await store.head("run"))!, { workers: [], metrics: {} });
  const ops = executed.trainer.calls.map(({ op }) => op);
  return { ...executed, store, batches, view, ops };
}

const result = (store: MemoryStore, key: RegExp) =>
  store.rows("run").filter((row) => row.kind === "result" && key.test(row.key)).map(({ value }) =>
    JSON.parse(value)
  );

Deno.test("preference reads every pair once an epoch, with its margin", async () => {
  const { batches } = await ran();
  const ids = batches.flatMap(({ pairs }) => pairs.map(({ row_id }) => row_id));
  deepStrictEqual(ids.toSorted(), Array.from({ length: 6 }, (_, n) => `pair-${n}`));
  const [pair] = batches[0]!.pairs;
  const n = pair!.row_id.slice(5);
  deepStrictEqual(pair, {
    row_id: `pair-${n}`,
    prompt: `say ${n}`,
    chosen: `${n} good`,
    rejected: `${n} bad`,
    margin: 0,
  });
});

Deno.test("preference scores before each round only what the loss reads", async () => {
  const dpo = await ran();
  deepStrictEqual(dpo.batches.map(({ columns }) => Object.keys(columns)), [["ref_logp"], [
    "ref_logp",
  ], ["ref_logp"]]);
  const scored = dpo.trainer.calls.filter(({ op }) => op === "score")
    .map(({ args }) => args as { reference_path: string; reference_offload: boolean });
  const keys = new Set(dpo.trainer.calls.filter(({ op }) => op === "score").map(({ key }) => key));
  strictEqual(keys.size, 3 + 1, "one for each round, one for both evaluations");
  ok(
    scored.every(({ reference_path, reference_offload }) =>
      reference_path.endsWith("/model") && !reference_offload
    ),
  );
  const elsewhere = await scratch();
  await writeFakeModel(elsewhere, 0.25);
  const other = await ran({ reference: { path: elsewhere, offload: true } });
  const [first] = other.trainer.calls.filter(({ op }) => op === "score").map(({ args }) =>
    args as typeof scored[0]
  );
  deepStrictEqual([first!.reference_path, first!.reference_offload], [elsewhere, true]);
  const rewardModel = await ran({ algorithm: { name: "reward_model" } });
  deepStrictEqual(rewardModel.batches.map(({ columns }) => columns), [{}, {}, {}]);
  strictEqual(rewardModel.ops.includes("score"), false);
});

Deno.test("preference evaluates held-out pairs before and after training", async () => {
  const { view, ops } = await ran();
  const evaluations = view.evaluations as PairEvaluation[];
  deepStrictEqual(evaluations.map(({ name, pairs }) => [name, pairs]), [["before", 4], [
    "after",
    4,
  ]]);
  notStrictEqual(evaluations[0]!.pair_margin, evaluations[1]!.pair_margin);
  ok(
    ops.indexOf("evaluate") < ops.indexOf("train") &&
      ops.lastIndexOf("evaluate") > ops.lastIndexOf("train"),
  );
  strictEqual((await ran({ evaluate: null })).ops.includes("evaluate"), false);
});

Deno.test("preference: pairs are no draws of the ledger", async () => {
  const { view } = await ran();
  deepStrictEqual(view.ledger, {
    read: 0,
    trained: 0,
    filtered: {},
    stale: 0,
    failed: {},
    pending: 0,
  });
  deepStrictEqual([view.loop, view.round, view.policy!.number], ["round", 3, 3]);
});

Deno.test("preference puts each pair of a round into one optimizer step", async () => {
  const { batches } = await ran({ trainer: { optimizer: { lr: 0.1 }, updates_per_batch: 2 } });
  deepStrictEqual(batches.map(({ updates }) => updates), Array(3).fill([[0], [1]]));
  const trainer = { optimizer: { lr: 0.1 }, updates_per_batch: 2, epochs_per_batch: 3 };
  const again = (await ran({ trainer, pairs_per_round: 4 })).batches.map(({ updates }) => updates);
  deepStrictEqual(again.map((steps) => steps.length), [6, 6, 6]);
  const epochs = again.flatMap((steps) =>
    [0, 2, 4].map((at) => [...steps[at]!, ...steps[at + 1]!])
  );
  deepStrictEqual(epochs.map((all) => all.toSorted()), Array(9).fill([0, 1, 2, 3]));
});

Deno.test("preference starts from the policy that a warm-up taught", async () => {
  const warmup = { rounds: 2, rows_per_round: 3, optimizer: { lr: 0.1 } };
  const { store, trainer, view } = await ran({ model: { recipe: "tiny_qwen", seed: 1 }, warmup });
  const [created] = trainer.calls.filter(({ op }) => op === "create_model").map(({ args }) => args);
  deepStrictEqual((created as { recipe: string }).recipe, "tiny_qwen");
  const [warm] = result(store, /export_warm/);
  const [start] = result(store, /^prepare_policy/);
  strictEqual(start.output.model_path, warm.output.dir);
  deepStrictEqual([view.policy!.number, view.loop, view.round], [3, "round", 3]);
});

Deno.test("preference: rows that were not read as preferences are named", async () => {
  const { store, artifacts, dir, model } = await stores();
  const rows = { train: rowsOf(4), eval: pairsOf(4) };
  const { outcome } = await execute(preference, preferenceConfig(model), {
    store,
    artifacts,
    dir,
    rows,
  });
  strictEqual(outcome.status, "failed");
  ok(JSON.stringify(outcome).includes("was not read as a preference"));
});

/** A pair, a good completion, a bad one, and again. */
const LABELLED = tableOf(
  Array.from({ length: 6 }, (_, n): Row => {
    const row = { row_id: `row-${n}`, prompt: `say ${n}`, completion: `${n} said`, columns: {} };
    return n % 3 === 0 ? { ...row, rejected: `${n} bad` } : { ...row, label: n % 3 === 1 };
  }),
  "labelled",
);

async function ranKto(algorithm: Record<string, unknown> = {}) {
  const places = await stores();
  const config = preferenceConfig(places.model, {
    algorithm: { name: "kto", ...algorithm },
    rounds: 2,
    pairs_per_round: 6,
  });
  const rows = { train: LABELLED, eval: LABELLED };
  const executed = await execute(preference, config, { ...places, rows });
  strictEqual(executed.outcome.status, "done", JSON.stringify(executed.outcome));
  const steps = executed.trainer.calls.filter(({ op }) => op === "train");
  const batches = await Promise.all(steps.map(async ({ args }) => {
    const { batch } = args as { batch: { sha256: string; bytes: number } };
    return await places.artifacts.getJson(batch) as Extract<Batch, { kind: "unpaired" }>;
  }));
  const head = (await places.store.head("run"))!;
  const { evaluations } = await runView(places.store, head, { workers: [], metrics: {} });
  return { batches, evaluations: evaluations as PairEvaluation[] };
}

Deno.test("preference with kto learns from labelled rows and from pairs, each row once an epoch", async () => {
  const { batches, evaluations } = await ranKto();
  deepStrictEqual(batches.map(({ columns }) => Object.keys(columns)), Array(2).fill(["ref_logp"]));
  for (const { completions, mismatched } of batches) {
    strictEqual(new Set(completions.map(({ row_id }) => row_id)).size, 6);
    deepStrictEqual(
      [true, false].map((is) => completions.filter(({ label }) => label === is).length),
      [4, 4],
    );
    ok(mismatched!.every((place, i) => completions[place]!.prompt !== completions[i]!.prompt));
  }
  deepStrictEqual(evaluations.map(({ name, pairs, completions }) => [name, pairs, completions]), [
    ["before", 0, 6],
    ["after", 0, 6],
  ]);
});

Deno.test("preference with kto's apo_zero_unpaired spends nothing on mismatched completions", async () => {
  const { batches } = await ranKto({ loss: "apo_zero_unpaired" });
  ok(batches.every(({ mismatched }) => mismatched === undefined));
});
