import { deepStrictEqual, notStrictEqual, ok, strictEqual } from "node:assert/strict";
import { Rows, Sampler, Trainer, Trainers } from "../../flows/mod.ts";
import { online } from "../../flows/online.ts";
import { fakeRun, FakeSampler, FakeTrainer } from "../../testing/mod.ts";
import { execute, onlineConfig, rowsOf, stores } from "../flows/fixtures.ts";

const tables = () => ({ train: rowsOf(16), eval: rowsOf(4) });

Deno.test("fakeRun() provides what graphs ask for, over the fakes that it returns", async () => {
  const { store, artifacts, dir } = await stores();
  const rows = tables();
  const trainer = new FakeTrainer({ artifacts });
  const samplers = [new FakeSampler(), new FakeSampler()];
  const fake = await fakeRun({ store, run: "a", artifacts, dir, rows, trainer, samplers });
  const provided = new Map(fake.resources.map(({ name, value }) => [name, value]));
  strictEqual(provided.get(Rows.name), rows);
  strictEqual(fake.trainer, trainer);
  strictEqual(fake.samplers, samplers);
  notStrictEqual(fake.critic, trainer, "the value model has its own worker");
  const [policy, critic] = provided.get(Trainers.name) as unknown[];
  strictEqual(policy, provided.get(Trainer.name));
  strictEqual(critic, provided.get("critic"));
  ok(provided.has(Sampler.name));
});

Deno.test("fakeRun() gives every run its directories below the one that it was given", async () => {
  const { store, artifacts, dir } = await stores();
  const { resources } = await fakeRun({ store, run: "a", artifacts, dir, rows: tables() });
  deepStrictEqual(resources.find(({ name }) => name === "paths")?.value, {
    home: dir,
    owner: null,
    run: `${dir}/run`,
    checkpoints: `${dir}/checkpoints`,
    publications: `${dir}/publications`,
  });
});

Deno.test("fakeRun() makes new workers for every start, which hold nothing", async () => {
  const { model, ...home } = await stores();
  const first = await execute(online, onlineConfig(model), home);
  strictEqual(first.outcome.status, "done");
  notStrictEqual(first.trainer.version, null);
  const next = await fakeRun({ ...home, run: "run", rows: tables() });
  deepStrictEqual([next.trainer.version, next.samplers[0]!.version], [null, null]);
});

Deno.test("fakeRun() resumes from what the run's rows record", async () => {
  const { model, ...home } = await stores();
  const stop = new FakeTrainer({ artifacts: home.artifacts });
  let calls = 0;
  stop.hook = ({ op }) => {
    calls += op === "train" ? 1 : 0;
    if (calls === 3) throw new Error("pulled out");
  };
  const broken = await execute(online, onlineConfig(model), { ...home, trainer: stop });
  strictEqual(broken.outcome.status, "failed");
  const resumed = await execute(online, onlineConfig(model), home);
  strictEqual(resumed.outcome.status, "done");
  const calm = await stores();
  const whole = await execute(online, onlineConfig(calm.model), {
    store: calm.store,
    artifacts: calm.artifacts,
    dir: calm.dir,
  });
  deepStrictEqual(resumed.trainer.version, whole.trainer.version);
});
