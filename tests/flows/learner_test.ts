import { deepStrictEqual, notStrictEqual, ok, strictEqual } from "node:assert/strict";
import { Batch, decodeColumn } from "../../data/mod.ts";
import { OutOfMemoryError, type RoundRecord } from "../../engine/mod.ts";
import { ledgerOf } from "../../flows/mod.ts";
import { forkRun, runView } from "../../runs/mod.ts";
import { online } from "../../flows/online.ts";
import { FakeSampler, FakeTrainer, writeFakeModel } from "../../testing/mod.ts";
import { rowsToRedo, verifyVersions } from "../../runs/verify.ts";
import { type CheckpointNote, PolicyTrainer, type Replan, VersionNote } from "../../workers/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../runs/fake_home.ts";
import { execute, onlineConfig, stores } from "./fixtures.ts";

type Stores = Awaited<ReturnType<typeof stores>>;
type Trajectories = Extract<Batch, { kind: "trajectories" }>;
const NOTHING_LIVE = { workers: [], metrics: {} };
const ppo = (model: string, overrides: Record<string, unknown> = {}) =>
  onlineConfig(model, {
    algorithm: { name: "ppo" },
    value_model: { optimizer: { lr: 0.2 } },
    ...overrides,
  });

async function done(overrides: Record<string, unknown> = {}, samplers = [new FakeSampler()]) {
  const home = await stores();
  const metrics: Record<string, number> = {};
  const executed = await execute(online, ppo(home.model, overrides), {
    ...home,
    samplers,
    engine: {
      onEvent: (event) => void (event.type === "metrics" && Object.assign(metrics, event.metrics)),
    },
  });
  strictEqual(executed.outcome.status, "done", JSON.stringify(executed.outcome));
  return { ...executed, ...home, metrics };
}

function rounds({ store }: Stores) {
  return store.rows("run").filter(({ kind }) => kind === "round").map(({ value }) => {
    const { carried, total } = JSON.parse(value) as RoundRecord;
    const versions = carried as Record<string, { version: string; number: number }>;
    return { carried: versions, ledger: ledgerOf(total) };
  });
}

type Outputs = Record<
  "batch" | "value_batch",
  Parameters<Stores["artifacts"]["getJson"]>[0] | null
>;

/** What credit made of each round. */
async function batches(
  { store, artifacts }: Stores,
  which: keyof Outputs = "batch",
): Promise<(Trajectories | null)[]> {
  const rows = store.rows("run").filter(({ kind, key }) =>
    kind === "result" && key.endsWith("/assign_credit")
  );
  return await Promise.all(rows.map(async ({ value }) => {
    const ref = (JSON.parse(value) as { output: Outputs }).output[which];
    return ref === null ? null : Batch.parse(await artifacts.getJson(ref)) as Trajectories;
  }));
}

async function column(
  { artifacts }: Stores,
  batch: Trajectories,
  name: string,
): Promise<Float32Array[]> {
  const found = batch.columns[name]!;
  if (found.kind !== "token") throw new TypeError(`${name} is not one number per token`);
  return decodeColumn(await artifacts.get(found.artifact));
}

const ops = (trainer: FakeTrainer, op: string) => trainer.calls.filter((call) => call.op === op);

Deno.test("ppo trains policy and value model on one batch, in two chains", async () => {
  const run = await done();
  deepStrictEqual([ops(run.trainer, "train").length, ops(run.critic, "train").length], [3, 3]);
  const [policy, value] = [await batches(run), await batches(run, "value_batch")];
  deepStrictEqual(policy, value);
  deepStrictEqual(Object.keys(policy[0]!.columns).sort(), ["advantage", "old_values", "returns"]);
  for (const [k, { carried }] of rounds(run).entries()) {
    deepStrictEqual([carried.policy!.number, carried.critic!.number], [k + 1, k + 1]);
    notStrictEqual(carried.policy!.version, carried.critic!.version);
  }
  const notes = run.store.rows("run").filter(({ kind }) => kind === "note/version");
  const groups = notes.map(({ value }) => VersionNote.parse(JSON.parse(value)).group ?? "trainer");
  deepStrictEqual(groups.toSorted(), [...Array(4).fill("critic"), ...Array(4).fill("trainer")]);
  for (
    const name of ["value/loss", "value/explained_variance", "optim/value_grad_norm", "policy/loss"]
  ) {
    ok(name in run.metrics, name);
  }
});

Deno.test("ppo starts the value model from the weights that its block names", async () => {
  const { critic, trainer } = await done();
  const lr = (one: FakeTrainer) =>
    (ops(one, "train")[0]!.args as { optimizer: { lr: number } }).optimizer.lr;
  deepStrictEqual([lr(trainer), lr(critic)], [0.1, 0.2]);
  const other = await stores();
  const config = ppo(other.model, { value_model: { path: `${other.dir}/values` } });
  await writeFakeModel(`${other.dir}/values`, 0.125);
  const executed = await execute(online, config, other);
  const [load] = ops(executed.critic, "load");
  strictEqual((load!.args as { model_path: string }).model_path, `${other.dir}/values`);
});

Deno.test("show tells both models, and both last directories are written", async () => {
  const run = await done();
  const view = await runView(run.store, (await run.store.head("run"))!, NOTHING_LIVE);
  const last = rounds(run).at(-1)!.carried;
  deepStrictEqual([view.policy!.version, view.critic!.version], [
    last.policy!.version,
    last.critic!.version,
  ]);
  deepStrictEqual([view.policy!.number, view.critic!.number], [3, 3]);
  for (const [name, model] of [["final", view.policy!], ["final_critic", view.critic!]] as const) {
    const [exported] = run.store.rows("run").filter(({ kind, key }) =>
      kind === "note/exported" && key === name
    );
    strictEqual(
      (JSON.parse(exported!.value) as { publication: { digest: string } }).publication.digest,
      model.digest,
    );
    ok((await Deno.stat(`${run.dir}/run/${name}`)).isDirectory);
  }
});

Deno.test("a run without a value loss has no value model", async () => {
  const run = await done({ algorithm: { name: "grpo" } });
  deepStrictEqual(run.critic.calls, []);
  deepStrictEqual(Object.keys(rounds(run)[0]!.carried), ["policy"]);
  const view = await runView(run.store, (await run.store.head("run"))!, NOTHING_LIVE);
  strictEqual(view.critic, undefined);
});

Deno.test("the policy waits while the value model warms up", async () => {
  const run = await done({ value_model: { optimizer: { lr: 0.2 }, warmup_rounds: 2 } });
  const numbers = rounds(run).map((
    { carried },
  ) => [carried.policy!.number, carried.critic!.number]);
  deepStrictEqual(numbers, [[0, 1], [0, 2], [1, 3]]);
  deepStrictEqual(rounds(run).map(({ ledger }) => ledger.trained), [2, 4, 6]);
  deepStrictEqual((await batches(run)).map((batch) => batch === null), [true, true, false]);
});

Deno.test("a round of equal rewards still teaches the value model", async () => {
  const run = await done({ rounds: 1, algorithm: { name: "ppo", whiten: true } }, [
    new FakeSampler({ complete: () => "1" }),
  ]);
  strictEqual(rounds(run)[0]!.carried.critic!.number, 1);
  strictEqual(rounds(run)[0]!.ledger.trained, 2);
});

Deno.test("mask_truncated leaves the value model its cut completions", async () => {
  const algorithm = { name: "ppo", mask_truncated: true };
  const cutLong = (text: string) => text.length > 4 ? "length" as const : "stop" as const;
  const some = await done({ algorithm }, [new FakeSampler({ stop: cutLong })]);
  const [policy, value] = [await batches(some), await batches(some, "value_batch")];
  const masked = policy.map((batch) => batch?.masked ?? []);
  ok(masked.some((places) => places.length > 0), JSON.stringify(masked));
  for (const [k, batch] of value.entries()) {
    const { masked: _, ...whole } = policy[k]!;
    deepStrictEqual(batch, whole);
  }
  ok(some.metrics["completions/masked"]! >= 0);
  const all = await done({ rounds: 1, algorithm }, [new FakeSampler({ stop: "length" })]);
  const [{ carried, ledger }] = rounds(all) as [ReturnType<typeof rounds>[number]];
  deepStrictEqual([carried.policy!.number, carried.critic!.number, ledger.trained], [0, 1, 2]);
});

Deno.test("credit takes V after the last token as 0 only after a true stop", async () => {
  const tokens = "12";
  const stopped = await done({ rounds: 1, algorithm: { name: "ppo", lambda: 1, whiten: false } }, [
    new FakeSampler({ complete: () => tokens }),
  ]);
  const [batch] = await batches(stopped);
  const [advantage, returns, values] = await Promise.all(
    ["advantage", "returns", "old_values"].map((name) => column(stopped, batch!, name)),
  );
  const reward = 1 - tokens.length / 8;
  for (const [i, row] of returns!.entries()) {
    // With lambda and gamma 1 the return of every token is what came after it: the reward, as
    // nothing follows a stop.
    deepStrictEqual([...row], [0, ...Array(tokens.length + 1).fill(Math.fround(reward))]);
    deepStrictEqual(advantage![i]![0], 0, "the prompt has no advantage");
    ok(Math.abs(advantage![i]![1]! - (reward - values![i]![1]!)) < 1e-6);
  }
  const cut = await done({ rounds: 1, algorithm: { name: "ppo", lambda: 1, whiten: false } }, [
    new FakeSampler({ complete: () => tokens, stop: "length" }),
  ]);
  const [cutBatch] = await batches(cut);
  for (const row of await column(cut, cutBatch!, "returns")) {
    ok(row[1]! > reward, "V after the last token is added");
  }
});

Deno.test("seed and round decide the order of later epochs", async () => {
  const trainer = { optimizer: { lr: 0.1 }, updates_per_batch: 2, epochs_per_batch: 3 };
  const many = { prompts_per_round: 8, trainer };
  const run = await done(many);
  const updates = (await batches(run)).map((batch) => batch!.updates);
  for (const steps of updates) {
    strictEqual(steps.length, 6);
    const epochs = [0, 1, 2].map((epoch) => steps.slice(2 * epoch, 2 * epoch + 2).flat());
    deepStrictEqual(epochs[0], [0, 1, 2, 3, 4, 5, 6, 7]);
    for (const epoch of epochs) deepStrictEqual(epoch.toSorted(), epochs[0]);
    notStrictEqual(String(epochs[1]), String(epochs[0]));
    notStrictEqual(String(epochs[1]), String(epochs[2]));
  }
  notStrictEqual(String(updates[0]), String(updates[1]));
  deepStrictEqual((await batches(await done(many))).map((batch) => batch!.updates), updates);
  ok("old_logp" in (await batches(run))[0]!.columns, "more than one step reads it");
});

Deno.test("one epoch of one update needs no old_logp; two epochs do", async () => {
  for (const epochs_per_batch of [1, 2]) {
    const run = await done({ trainer: { optimizer: { lr: 0.1 }, epochs_per_batch } });
    strictEqual(ops(run.trainer, "score").length, epochs_per_batch === 1 ? 0 : 3);
  }
});

Deno.test("a round trains with the coefficient that the one before returned", async () => {
  const algorithm = {
    name: "ppo",
    kl_coef: 0.1,
    kl_in: "reward",
    kl_estimator: "k1",
    kl_target: 0.01,
    kl_horizon: 40,
  };
  const run = await done({ algorithm });
  const recorded = (await batches(run)).map((batch) => batch!.coef.kl!);
  const carried = rounds(run).map(({ carried }) => (carried.coef as unknown as { kl: number }).kl);
  deepStrictEqual(recorded, [0.1, carried[0], carried[1]]);
  strictEqual(new Set([...recorded, carried[2]]).size, 4);
});

Deno.test("both chains keep checkpoints by one rule, each its own", async () => {
  const run = await done({ rounds: 6, checkpoints: { every_rounds: 2, keep_last: 2 } });
  const remaining = (await Array.fromAsync(Deno.readDir(`${run.dir}/checkpoints`))).map((
    { name },
  ) => name);
  const notes = run.store.rows("run").filter(({ kind }) => kind === "note/checkpoint")
    .map(({ value }) => JSON.parse(value) as CheckpointNote);
  const kept = notes.filter(({ dir }) => remaining.includes(dir.split("/").at(-1)!));
  deepStrictEqual(kept.map(({ group = "trainer", round }) => `${group} ${round}`).toSorted(), [
    "critic 4",
    "critic 6",
    "trainer 4",
    "trainer 6",
  ]);
  strictEqual(remaining.length, 4);
});

Deno.test("keep_best keeps the same rounds of both chains", async () => {
  for (const metric of ["reward/mean", "policy/loss", "value/loss"]) {
    const run = await done({
      rounds: 6,
      checkpoints: { every_rounds: 1, keep_last: 1, keep_best: { metric } },
    });
    const remaining = (await Array.fromAsync(Deno.readDir(`${run.dir}/checkpoints`))).map((
      { name },
    ) => name);
    const notes = run.store.rows("run").filter(({ kind }) => kind === "note/checkpoint")
      .map(({ value }) => JSON.parse(value) as CheckpointNote);
    ok(notes.every((note) => note.metric !== null), metric);
    const rounds = (group?: string) =>
      notes.filter((note) =>
        note.group === group && remaining.includes(note.dir.split("/").at(-1)!)
      )
        .map(({ round }) => round);
    deepStrictEqual(rounds("critic"), rounds(), metric);
  }
});

Deno.test("a lost value model is restored from its own chain", async () => {
  const home = await stores();
  const critic = new FakeTrainer({ artifacts: home.artifacts });
  let trains = 0;
  critic.hook = ({ op }, moment) => {
    if (op !== "train" || moment !== "begin" || ++trains !== 3) return;
    critic.forget();
  };
  const { outcome } = await execute(online, ppo(home.model), { ...home, critic });
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  const recoveries = home.store.rows("run").filter(({ kind }) => kind === "recovery").map((
    { value },
  ) => JSON.parse(value));
  deepStrictEqual(
    recoveries.map(({ group, action, batches_redone }) => [group, action, batches_redone]),
    [
      ["critic", "load_checkpoint", 0],
    ],
  );
  const calm = await done();
  const digest = async (one: Stores) =>
    (await runView(one.store, (await one.store.head("run"))!, NOTHING_LIVE)).critic;
  deepStrictEqual(await digest(home), await digest(calm));
});

Deno.test("a value model without memory is replanned by its own field", async () => {
  const home = await stores();
  const critic = new FakeTrainer({ artifacts: home.artifacts });
  let trains = 0;
  critic.hook = ({ op }, moment) => {
    if (op !== "train" || moment !== "begin" || ++trains !== 2) return;
    critic.forget();
    throw new OutOfMemoryError("CUDA out of memory", {
      exception: "OutOfMemoryError",
      signal: null,
    });
  };
  const config = ppo(home.model, {
    value_model: { optimizer: { lr: 0.2 }, micro_batch_tokens_max: 512 },
  });
  const { outcome, trainer } = await execute(online, config, { ...home, critic });
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  const [replan] = home.store.rows("run").filter(({ kind }) => kind === "note/replan").map((
    { value },
  ) => JSON.parse(value) as Replan);
  const { field, from, to, round } = replan!;
  deepStrictEqual([field, from, to, round], ["value_model.micro_batch_tokens_max", 512, 256, 2]);
  const limits = (one: FakeTrainer) =>
    ops(one, "train").map(({ args }) =>
      (args as { micro_batch_tokens_max: number }).micro_batch_tokens_max
    );
  deepStrictEqual(limits(trainer), [4096, 4096, 4096]);
  deepStrictEqual(new Set(limits(critic)), new Set([512, 256]));
});

Deno.test("verify redoes both chains, and names a wrong one by its group", async () => {
  const run = await done();
  const head = (await run.store.head("run"))!;
  const recorded = (await rowsToRedo(run.store, head)).map((row) => ({
    ...row,
    value: JSON.parse(row.value),
  }));
  const redoing = (group?: "critic") => {
    const operator = new FakeTrainer({ artifacts: run.artifacts });
    const of = group && { group, block: "value_model" as const, head: "value" as const };
    return new PolicyTrainer({
      operator,
      artifacts: run.artifacts,
      recorded,
      checkpoints_dir: `${run.dir}/verify`,
      ...of,
      clock: { now: () => 0, monotonic: () => 0 } as never,
      numerics: (tokens) => operator.numerics(tokens),
    });
  };
  const options = {
    artifacts: run.artifacts,
    trainer: redoing(),
    critic: redoing("critic"),
    dir: `${run.dir}/redone`,
  };
  const { equal, versions } = await verifyVersions(run.store, head, options);
  ok(equal);
  const numbers = (group?: string) =>
    versions.filter((one) => one.group === group).map(({ number }) => number);
  deepStrictEqual([numbers(), numbers("critic")], [[0, 1, 2, 3], [1, 2, 3]]);
  ok(versions.filter(({ number }) => number > 0).every(({ steps }) => steps === "equal"));
});

Deno.test("a fork of ppo ends with its parent's policy and value model", async () => {
  const home = await freshFakeHome();
  const shown = async (id: string) => {
    const { policy, critic, ledger } = await runView(
      home.store,
      (await home.store.head(id))!,
      NOTHING_LIVE,
    );
    return { policy, critic, ledger };
  };
  await createFakeRun(home, "a", {
    algorithm: { name: "ppo" },
    value_model: { optimizer: { lr: 0.2 } },
  });
  await executeFake(home, "a");
  for (const round of [0, 2, 3, 6]) {
    const id = `b${round}`;
    await forkRun(home, (await home.store.head("a"))!, { round, id });
    strictEqual((await executeFake(home, id)).status, "done");
    deepStrictEqual(await shown(id), await shown("a"));
  }
});

Deno.test("a fork may add a value model, which begins at the start", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  await executeFake(home, "a");
  await forkRun(home, (await home.store.head("a"))!, {
    round: 3,
    id: "b",
    overrides: ['algorithm={"name":"ppo"}'],
  });
  strictEqual((await executeFake(home, "b")).status, "done");
  const view = await runView(home.store, (await home.store.head("b"))!, NOTHING_LIVE);
  deepStrictEqual([view.policy!.number, view.critic!.number], [6, 3]);
});
