/**
 * Algorithms in Python in the graphs that ship, over fake workers: what is asked of the trainer,
 * what is recorded.
 */
import { misuse } from "../../flows/stages/open_algorithm.ts";
import { deepStrictEqual, match, notStrictEqual, ok, strictEqual } from "node:assert/strict";
import { SupervisedConfig } from "../../configs/mod.ts";
import type { ArtifactRef, Batch, PythonLoss } from "../../data/mod.ts";
import { sha256Hex, UserCodeError } from "../../engine/mod.ts";
import { FakeTrainer, MemoryStore } from "../../testing/mod.ts";
import { forkRun } from "../../runs/mod.ts";
import { online } from "../../flows/online.ts";
import { supervised } from "../../flows/supervised.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../runs/fake_home.ts";
import { execute, onlineConfig, stores } from "./fixtures.ts";

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
  const [why, overrides, text, said] of [
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
    match(outcome.error.message, said);
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
    coef: {},
  } as unknown as Parameters<typeof misuse>[0];
  for (const learns_from of ["completions", "pairs"] as const) {
    match(
      misuse(described, { learns_from, value_model: true, samples_per_prompt: null })!,
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
    coef: {},
  } as unknown as Parameters<typeof misuse>[0];
  const use = { learns_from: "rewards" as const, value_model: false, samples_per_prompt: null };
  match(misuse(described, use)!, /reads 'parts', but algorithm\.parts is not true/);
  strictEqual(misuse(described, { ...use, parts: true }), null);
});

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
  const [why, inputs, said] of [
    [
      "reads advantages",
      ["advantage", "logp"],
      /reads 'advantage', which learning from completions does not provide/,
    ],
    ["reads what there is", ["logp", "n_tokens"], null],
  ] as const
) {
  Deno.test(`python: a file that ${why} in supervised training is ${said ? "refused" : "trained"}`, async () => {
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
    strictEqual(trained.size, said ? 0 : 2);
    if (said) match(outcome.status === "failed" ? outcome.error.message : "", said);
    else strictEqual(outcome.status, "done", JSON.stringify(outcome));
  });
}

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
