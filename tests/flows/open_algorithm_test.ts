/**
 * Algorithms in Python in the graphs that ship, over fake workers: what is asked of the trainer,
 * what is recorded.
 */
import { misuse } from "../../flows/stages/open_algorithm.ts";
import { deepStrictEqual, match, notStrictEqual, ok, strictEqual } from "node:assert/strict";
import { SupervisedConfig } from "../../configs/mod.ts";
import type { AlgorithmDescription, ArtifactRef, Batch, PythonLoss } from "../../data/mod.ts";
import { sha256Hex, UserCodeError } from "../../engine/mod.ts";
import { FakeSampler, FakeTrainer, MemoryStore } from "../../testing/mod.ts";
import { forkRun } from "../../runs/mod.ts";
import { online } from "../../flows/online.ts";
import { preference } from "../../flows/preference.ts";
import { supervised } from "../../flows/supervised.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../runs/fake_home.ts";
import { execute, onlineConfig, stores } from "./fixtures.ts";
import { pairsOf, preferenceConfig } from "./preference_fixtures.ts";

const SOURCE = `
from dataclasses import dataclass

@dataclass
class Config:
    scale: float = 1.0

def credit(round, c):
    return {"advantage": c.scale * (round.reward - round.reward.mean())}

def loss(x, c):
    return {"loss": ("token_mean", -x.advantage * x.logp)}
`;

/** A file, and the configuration's block of it as the loader makes it. */
async function algorithmIn(
  dir: string,
  { text = SOURCE, ...settings }: { text?: string; scale?: number } = {},
) {
  const source = `${dir}/mine.py`;
  await Deno.writeTextFile(source, text);
  return { name: "python", source, settings, sha256: sha256Hex(new TextEncoder().encode(text)) };
}

async function ran(
  overrides: Record<string, unknown> = {},
  settings: { text?: string; scale?: number } = {},
) {
  const { dir, model, ...home } = await stores();
  const algorithm = await algorithmIn(dir, settings);
  const config = onlineConfig(model, { algorithm: { ...algorithm, ...overrides } });
  const { outcome, trainer } = await execute(online, config, { ...home, dir });
  return { ...home, dir, outcome, trainer, ops: trainer.calls.map(({ op }) => op) };
}

Deno.test("a Python algorithm is opened once, and gives each round's credit", async () => {
  const { outcome, trainer, ops, artifacts, store } = await ran({ settings: { scale: 2 } });
  strictEqual(outcome.status, "done");
  strictEqual(ops.filter((op) => op === "open_algorithm").length, 1);
  ok(ops.indexOf("open_algorithm") < ops.indexOf("credit"));
  strictEqual(ops.filter((op) => op === "credit").length, 3);
  const [train] = trainer.calls.filter(({ op }) => op === "train").map(({ args }) =>
    args as { loss: { sha256: string } }
  );
  const { python, version } = await artifacts.getJson(train!.loss as never) as PythonLoss;
  deepStrictEqual({ version, python }, {
    version: 1,
    python: { file: "mine.py", source: SOURCE, settings: { scale: 2 }, part: "loss" },
  });
  const credit = store.rows("run").find(({ kind, key }) =>
    kind === "result" && /round\/1\/assign_credit/.test(key)
  )!;
  const batch = await artifacts.getJson(JSON.parse(credit.value).output.batch) as Batch;
  ok(batch.kind === "trajectories" && batch.columns.advantage!.kind === "sequence");
  const { values } = batch.columns.advantage!;
  ok(
    Math.abs(values.reduce((sum, value) => sum + value, 0)) < 1e-12 &&
      values.some((value) => value !== 0),
  );
});

Deno.test("a Python file that changes after it was opened changes nothing", async () => {
  const { store, artifacts, dir, model } = await stores();
  const config = onlineConfig(model, { algorithm: await algorithmIn(dir) });
  const calm = await execute(online, config, { store: new MemoryStore(), artifacts, dir });
  const broken = new FakeTrainer({
    artifacts,
    hook: ({ op, key }) => {
      if (op === "train" && key.startsWith("round/2/")) {
        throw new UserCodeError("Cannot train because the test says so");
      }
    },
  });
  strictEqual(
    (await execute(online, config, { store, artifacts, dir, trainer: broken })).outcome.status,
    "failed",
  );
  await algorithmIn(dir, { text: `${SOURCE}\n# another` });
  const { outcome, trainer } = await execute(online, config, { store, artifacts, dir });
  strictEqual(trainer.calls.some(({ op }) => op === "open_algorithm"), false);
  deepStrictEqual(outcome, calm.outcome);
});

for (
  const [why, overrides, text, reason] of [
    [
      "changed before it was opened",
      { sha256: "0".repeat(64) },
      SOURCE,
      /mine.py because it has changed since the run was created/,
    ],
    [
      "is not there",
      { source: "/nowhere/other.py" },
      SOURCE,
      /Cannot open the algorithm in \/nowhere\/other.py/,
    ],
    [
      "is said to have a value model",
      { value_model: true },
      SOURCE,
      /value_model is true, but it has no value_loss/,
    ],
  ] as const
) {
  Deno.test(`python: a file that ${why} fails the run before its first round`, async () => {
    const { outcome, ops } = await ran(overrides, { text });
    ok(outcome.status === "failed");
    match(outcome.error.message, reason);
    strictEqual(ops.includes("train"), false);
  });
}

Deno.test("python: a value loss is refused where no value model is trained", () => {
  const described = {
    inputs: ["logp"],
    needs: null,
    value_inputs: ["values", "returns"],
    group_min: 1,
    pairs: false,
    mismatched: false,
    coef: {},
  } as unknown as Parameters<typeof misuse>[0];
  for (const learns_from of ["completions", "pairs"] as const) {
    match(
      misuse(described, { value_model: true }, { learns_from, samples_per_prompt: null })!,
      /has a value_loss\(x, c, s\), but learning from (completions|pairs) trains no value model/,
    );
  }
});

Deno.test("python: a credit that reads each reward needs algorithm.parts", () => {
  const described = {
    inputs: ["logp"],
    needs: ["parts"],
    value_inputs: null,
    group_min: 1,
    pairs: false,
    mismatched: false,
    coef: {},
  } as unknown as Parameters<typeof misuse>[0];
  const use = { learns_from: "rewards" as const, samples_per_prompt: null };
  const chosen = { value_model: false };
  match(misuse(described, chosen, use)!, /reads 'parts', but algorithm\.parts is not true/);
  strictEqual(misuse(described, { ...chosen, parts: true }, use), null);
});

/** What a trainer finds in a file with a loss of pairs, or of labelled completions. */
const PREFERENCE = {
  inputs: ["margin", "score"],
  needs: null,
  value_inputs: null,
  group_min: 1,
  pairs: true,
  mismatched: false,
  coef: {},
} as unknown as AlgorithmDescription;
const LABELS = { ...PREFERENCE, inputs: ["label", "logp", "ref_logp"], pairs: false };

for (
  const [title, described, chosen, reason] of [
    ["a reward model", PREFERENCE, { head: "score" }, null],
    [
      "a reward model whose text does not show it",
      PREFERENCE,
      {},
      /reads 'score', but its text does not show x\.score: write head: score beside/,
    ],
    [
      "a language model that is said to output scores",
      { ...PREFERENCE, inputs: ["logp", "ref_logp"] },
      { head: "score" },
      /algorithm\.head says that its loss reads x\.score, which it does not: write head: null/,
    ],
    [
      "scores and tokens",
      { ...PREFERENCE, inputs: ["logp", "score"] },
      { head: "score" },
      /reads 'logp', which a model that outputs a score does not have/,
    ],
    ["labels", LABELS, { unpaired: { mismatched: false } }, null],
    [
      "labels and mismatched completions",
      { ...LABELS, mismatched: true },
      { unpaired: { mismatched: true } },
      null,
    ],
    [
      "labels that nobody asked for",
      LABELS,
      {},
      /reads 'label', but .*: write unpaired: \{\} beside/,
    ],
    [
      "mismatched completions that are not drawn",
      { ...LABELS, mismatched: true },
      { unpaired: { mismatched: false } },
      /MISMATCHED is true in it, but .*: write unpaired: \{ mismatched: true \} beside/,
    ],
    [
      "labels whose mismatched completions it does not read",
      LABELS,
      { unpaired: { mismatched: true } },
      /mismatched is true, but the file has no MISMATCHED = True: add it/,
    ],
    [
      "pairs with mismatched completions",
      { ...PREFERENCE, inputs: ["logp"], mismatched: true },
      {},
      /has MISMATCHED = True, but its loss reads no 'label'/,
    ],
    ["pairs that is no reward model", { ...PREFERENCE, inputs: ["logp"] }, { head: null }, null],
    [
      "labels of pairs",
      { ...LABELS, pairs: true },
      { unpaired: { mismatched: false } },
      /but also compares pairs/,
    ],
    [
      "labels with a margin",
      { ...LABELS, inputs: ["label", "logp", "margin"] },
      { unpaired: { mismatched: false } },
      /reads 'margin', which learning from pairs does not provide/,
    ],
  ] as const
) {
  Deno.test(`python: a loss of ${title} is ${reason ? "refused" : "accepted"} for pairs`, () => {
    const use = { learns_from: "pairs" as const, samples_per_prompt: null };
    const found = misuse(
      described as AlgorithmDescription,
      { value_model: false, ...chosen } as never,
      use,
    );
    if (reason === null) strictEqual(found, null);
    else match(found ?? "nothing", reason);
  });
}

Deno.test("python: credit receives each reward by itself", async () => {
  const { dir, model, ...home } = await stores();
  const algorithm = { ...await algorithmIn(dir), parts: true };
  const trainer = new FakeTrainer({
    artifacts: home.artifacts,
    describes: { needs: ["parts" as const] },
  });
  await execute(online, onlineConfig(model, { algorithm }), { ...home, dir, trainer });
  const { args } = trainer.calls.find(({ op }) => op === "credit")!;
  const round = await home.artifacts.getJson((args as { round: ArtifactRef }).round) as {
    reward: number[];
    parts: { name: string; weight: number; paid: number[] }[];
  };
  deepStrictEqual(round.parts.map(({ weight, paid }) => [weight, paid]), [[1, round.reward]]);
});

Deno.test("a Python file with a value loss trains a value model", async () => {
  const { dir, model, ...home } = await stores();
  const algorithm = { ...await algorithmIn(dir), value_model: true };
  const describes = {
    value_inputs: ["old_values", "returns", "values"],
    needs: ["values" as const, "bootstrap" as const],
  };
  const [trainer, critic] = [1, 2].map(() =>
    new FakeTrainer({ artifacts: home.artifacts, describes })
  );
  const { outcome } = await execute(online, onlineConfig(model, { algorithm }), {
    ...home,
    dir,
    trainer,
    critic,
  });
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  const [credit] = trainer!.calls.filter(({ op }) => op === "credit").map(({ args }) =>
    args as { round: never }
  );
  const round = await home.artifacts.getJson(credit!.round) as Record<string, unknown[]>;
  deepStrictEqual([round.values!.length, round.bootstrap!.length], [4, 4]);
  const trained = critic!.calls.filter(({ op }) => op === "train").map(({ args }) =>
    args as { loss: never }
  );
  strictEqual(trained.length, 3);
  strictEqual(
    (await home.artifacts.getJson(trained[0]!.loss) as PythonLoss).python.part,
    "value_loss",
  );
});

for (
  const [why, inputs, reason] of [
    [
      "reads advantages",
      ["advantage", "logp"],
      /reads 'advantage', which learning from completions does not provide/,
    ],
    ["reads what there is", ["logp", "n_tokens"], null],
  ] as const
) {
  Deno.test(`python: a file that ${why} in supervised training is ${reason ? "refused" : "trained"}`, async () => {
    const { dir, model, ...home } = await stores();
    const config = SupervisedConfig.parse({
      flow: "supervised",
      rounds: 2,
      rows_per_round: 2,
      algorithm: await algorithmIn(dir),
      model: { path: model },
      data: { train: [{ path: "train.jsonl" }] },
    });
    const trainer = new FakeTrainer({
      artifacts: home.artifacts,
      describes: { inputs: [...inputs], needs: null },
    });
    const { outcome } = await execute(supervised, config, { ...home, dir, trainer });
    const trained = new Set(trainer.calls.filter(({ op }) => op === "train").map(({ key }) => key));
    strictEqual(trained.size, reason ? 0 : 2);
    if (reason) match(outcome.status === "failed" ? outcome.error.message : "", reason);
    else strictEqual(outcome.status, "done", JSON.stringify(outcome));
  });
}

Deno.test("python: only the preference flow trains reward models, or learns from labels", () => {
  const use = { learns_from: "rewards" as const, samples_per_prompt: 4 };
  const described = { ...PREFERENCE, inputs: ["logp"], needs: [], pairs: false };
  const chosen = { value_model: false, head: "score" as const };
  match(misuse(described, chosen, use)!, /head is given, but learning from rewards trains no such/);
  match(
    misuse(described, { value_model: false, unpaired: { mismatched: false } }, use)!,
    /unpaired is given, but .*: write unpaired: null beside .*, or use flow: preference/,
  );
  strictEqual(misuse(described, { value_model: false, head: null, unpaired: null }, use), null);
});

Deno.test("a Python file draws until a round is full; groups of an older version are scored as it reads them", async () => {
  const { dir, model, ...home } = await stores();
  const algorithm = {
    ...await algorithmIn(dir),
    refill_batches_max: 3,
    surplus: "reuse" as const,
  };
  const describes = { inputs: ["advantage", "logp", "old_logp"] };
  const trainer = new FakeTrainer({ artifacts: home.artifacts, describes });
  // Only these draws have two lengths, so only their groups teach anything.
  const usable = [1, 2, 3, 6, 7, 8, 9];
  const samplers = [
    new FakeSampler({
      complete: ({ draw, sample }) => usable.includes(draw) ? "1".repeat(1 + sample) : "11",
    }),
  ];
  const config = onlineConfig(model, { algorithm });
  const { outcome } = await execute(online, config, { ...home, dir, trainer, samplers });
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  const rows = home.store.rows("run").filter(({ kind, key }) =>
    kind === "result" && key.endsWith("/assign_credit")
  );
  const batches = await Promise.all(
    rows.map(async ({ value }) =>
      await home.artifacts.getJson(JSON.parse(value).output.batch) as Batch
    ),
  );
  const trained = batches.map((batch) =>
    batch.kind === "trajectories" && [
      batch.groups.map(({ draw }) => draw),
      batch.staleness,
      "old_logp" in batch.columns,
    ]
  );
  deepStrictEqual(trained, [
    [[1, 2], [], false],
    [[3, 6], [1, 1, 0, 0], true],
    [[7, 8], [1, 1, 0, 0], true],
  ]);
});

Deno.test("a Python file trains a reward model on pairs, and a language model on labels", async () => {
  const train = async (chosen: object, describes: Partial<AlgorithmDescription>) => {
    const { dir, model, ...home } = await stores();
    const algorithm = { ...await algorithmIn(dir), ...chosen };
    const trainer = new FakeTrainer({
      artifacts: home.artifacts,
      describes: { needs: null, group_min: 1, ...describes },
    });
    const config = preferenceConfig(model, { algorithm });
    const rows = { train: pairsOf(6), eval: pairsOf(5) };
    const { outcome } = await execute(preference, config, { ...home, dir, trainer, rows });
    strictEqual(outcome.status, "done", JSON.stringify(outcome));
    const steps = trainer.calls.filter(({ op }) => op === "train")
      .map(({ args }) => args as { batch: ArtifactRef; loss: ArtifactRef });
    const { python } = await home.artifacts.getJson(steps[0]!.loss) as PythonLoss;
    const batch = await home.artifacts.getJson(steps[0]!.batch) as Batch;
    const columns = "columns" in batch ? Object.keys(batch.columns) : [];
    return { file: python.file, kind: batch.kind, columns };
  };
  deepStrictEqual(await train({ head: "score" }, { inputs: ["margin", "score"], pairs: true }), {
    file: "mine.py",
    kind: "preference",
    columns: [],
  });
  const labels = { inputs: ["label", "logp", "ref_logp"], mismatched: true };
  deepStrictEqual(await train({ unpaired: { mismatched: true } }, labels), {
    file: "mine.py",
    kind: "unpaired",
    columns: ["ref_logp"],
  });
});

Deno.test("the trainer that opens a Python file is told the profile; the recorded loss has settings alone", async () => {
  const { dir, model, ...home } = await stores();
  const algorithm = { ...await algorithmIn(dir), profile: "paper" };
  const trainer = new FakeTrainer({ artifacts: home.artifacts });
  await execute(online, onlineConfig(model, { algorithm }), { ...home, dir, trainer });
  const argsOf = (op: string) => trainer.calls.find((call) => call.op === op)!.args as never;
  const { algorithm: opened } = argsOf("open_algorithm") as { algorithm: ArtifactRef };
  deepStrictEqual(await home.artifacts.getJson(opened), {
    file: "mine.py",
    source: SOURCE,
    settings: {},
    profile: "paper",
  });
  const { loss } = argsOf("train") as { loss: ArtifactRef };
  deepStrictEqual((await home.artifacts.getJson(loss) as PythonLoss).python, {
    file: "mine.py",
    source: SOURCE,
    settings: {},
    part: "loss",
  });
});

Deno.test("a fork keeps the Python file unless it names a different one", async () => {
  const home = await freshFakeHome();
  const opened = (run: string) =>
    (home.store as MemoryStore).rows(run).filter(({ kind, key }) =>
      kind === "result" && key === "open_algorithm"
    );
  await createFakeRun(home, "a", { algorithm: await algorithmIn(home.dir) });
  const a = await executeFake(home, "a");
  const head = (await home.store.head("a"))!;
  await forkRun(home, head, { round: 3, id: "same" });
  const same = await executeFake(home, "same");
  strictEqual(same.version, a.version);
  strictEqual(same.trainer.calls.some(({ op }) => op === "open_algorithm"), false);

  await forkRun(home, head, { round: 3, id: "other", overrides: ["algorithm.scale=3"] });
  const other = await executeFake(home, "other");
  strictEqual(other.trainer.calls.filter(({ op }) => op === "open_algorithm").length, 1);
  notStrictEqual(other.version, a.version);
  deepStrictEqual(JSON.parse(opened("other")[0]!.value).output.settings, { scale: 3 });

  await algorithmIn(home.dir, { text: `${SOURCE}\n# another` });
  await forkRun(home, head, { round: 3, id: "edited" });
  strictEqual(
    (await executeFake(home, "edited")).trainer.calls.filter(({ op }) => op === "open_algorithm")
      .length,
    1,
  );

  await forkRun(home, head, { round: 3, id: "table", overrides: ["algorithm=grpo"] });
  strictEqual((await executeFake(home, "table")).status, "done");
});

Deno.test("python: a run of the table's algorithm may be forked to one in Python", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  await executeFake(home, "a");
  const { source } = await algorithmIn(home.dir);
  await forkRun(home, (await home.store.head("a"))!, {
    round: 2,
    id: "b",
    overrides: [`algorithm=${source}`],
  });
  const { status, trainer } = await executeFake(home, "b");
  strictEqual(status, "done");
  strictEqual(trainer.calls.filter(({ op }) => op === "credit").length, 4);
});
