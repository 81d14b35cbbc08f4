import { deepStrictEqual, match, notStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { ArtifactStore, Engine, OutOfMemoryError, type RoundRecord, type RunHead } from "../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../engine/testing.ts";
import {
  createRun,
  forkRun,
  type ForkRunOptions,
  Home,
  recordedDefinition,
  residentRows,
  runView,
  SHIPPED,
} from "../../flows/mod.ts";
import { online } from "../../flows/online.ts";
import { fakeRun } from "../../flows/testing.ts";
import { type Replan, writeFakeModel } from "../../workers/mod.ts";
import { onlineConfig, rowsOf, scratch } from "./fixtures.ts";

const NOTHING_LIVE = { workers: [], metrics: {} };

/** A home with a model and rows that the configuration's checks accept; the fake trainer reads one number of it. */
async function freshHome(store = new MemoryStore()): Promise<Home> {
  const dir = await scratch();
  await writeFakeModel(`${dir}/model`, 0.5);
  for (const name of ["model/config.json", "model/model.safetensors", "train.jsonl"]) {
    await Deno.writeTextFile(`${dir}/${name}`, "");
  }
  return new Home(dir, { store, artifacts: new ArtifactStore(`${dir}/artifacts`) });
}

async function create(home: Home, id: string, overrides: Record<string, unknown> = {}): Promise<RunHead> {
  const config = onlineConfig(`${home.dir}/model`, {
    ...{
      rounds: 6,
      data: { train: [{ path: `${home.dir}/train.jsonl` }] },
      checkpoints: { every_rounds: 2, keep_last: 1 },
    },
    ...overrides,
  });
  return await createRun(home, online, { config, id, entry: `${SHIPPED}online` });
}

type Ended = Awaited<ReturnType<typeof execute>>;

/** One engine's start at a run, with fresh fake workers. */
async function execute(home: Home, id: string, store = home.store as MemoryStore) {
  const head = (await store.head(id))!;
  const { definition, config } = await recordedDefinition(head);
  const { artifacts } = home;
  const dir = `${home.dir}/work/${id}`;
  const restart = head.parent && head.epoch === 0 ? "fork" as const : "resume" as const;
  const fake = await fakeRun({ store, artifacts, run: id, dir, restart, rows: { train: rowsOf(16) } });
  const outcome = await new Engine({ store, artifacts, resources: fake.resources }).execute(
    id,
    definition.build(config),
  );
  const view = await runView(store, (await store.head(id))!, NOTHING_LIVE);
  const { version, digest } = view.policy!;
  return {
    status: outcome.status,
    version,
    digest,
    ledger: view.ledger,
    trainer: fake.trainer,
    recoveries: view.recoveries,
  };
}

const same = ({ status, version, digest, ledger }: Ended) => ({ status, version, digest, ledger });

async function fork(home: Home, from: string, options: ForkRunOptions): Promise<RunHead> {
  return await forkRun(home, (await home.store.head(from))!, options);
}

/** Versions that a run's rounds carry, by round, with those of its parents. */
async function versions(home: Home, id: string): Promise<Record<number, string>> {
  const head = (await home.store.head(id))!;
  const rows = await home.store.read(id, { kinds: ["round"] });
  const above = head.parent ? await versions(home, head.parent.run) : {};
  const upTo = Object.entries(above).filter(([round]) => Number(round) <= head.parent!.round);
  const own = rows.map(({ value }) => JSON.parse(value) as RoundRecord)
    .map(({ round, carried }) => [round, (carried.policy as { version: string }).version]);
  return Object.fromEntries([...upTo, ...own]);
}

Deno.test("fork: from any round, with nothing changed, ends with its parent's version, weights and ledger", async () => {
  const home = await freshHome();
  await create(home, "a");
  const whole = await execute(home, "a");
  strictEqual(whole.status, "done");
  for (let round = 0; round <= 6; round++) {
    const id = `b${round}`;
    await fork(home, "a", { round, id });
    const ended = await execute(home, id);
    deepStrictEqual(same(ended), same(whole));
    // keep_last 1 has left the checkpoint of round 6 alone: other rounds are redone from the base.
    const redone = ended.recoveries.map(({ cause, batches_redone }) => [cause, batches_redone]);
    deepStrictEqual(redone, [["fork", round === 6 ? 0 : round]]);
  }
});

Deno.test("fork: an override changes what comes after the round and nothing before it", async () => {
  const home = await freshHome();
  await create(home, "a");
  await execute(home, "a");
  const child = await fork(home, "a", { round: 3, id: "b", overrides: ["trainer.optimizer.lr=0.02", "rounds=8"] });
  deepStrictEqual([child.parent?.run, child.parent?.round], ["a", 3]);
  const ended = await execute(home, "b");
  const [before, after] = [await versions(home, "a"), await versions(home, "b")];
  for (const round of [1, 2, 3]) strictEqual(after[round], before[round]);
  for (const round of [4, 5, 6]) notStrictEqual(after[round], before[round]);
  deepStrictEqual([Object.keys(after).length, ended.ledger.read, ended.ledger.trained], [8, 16, 16]);
  const redo = ended.trainer.calls.filter(({ op }) => op === "train").map(({ args }) =>
    (args as { optimizer: { lr: number } }).optimizer.lr
  );
  deepStrictEqual(redo, [0.1, 0.1, 0.1, 0.02, 0.02, 0.02, 0.02, 0.02]);
});

Deno.test("fork: before the first round, with other settings, it ends with the weights of a new run of them", async () => {
  const home = await freshHome();
  await create(home, "a");
  await execute(home, "a");
  await fork(home, "a", { round: 0, id: "b", overrides: ["trainer.optimizer.lr=0.02", "prompts_per_round=4"] });
  await create(home, "c", { trainer: { optimizer: { lr: 0.02 } }, prompts_per_round: 4 });
  const [forked, anew] = [await execute(home, "b"), await execute(home, "c")];
  deepStrictEqual([forked.digest, forked.ledger], [anew.digest, anew.ledger]);
});

Deno.test("fork: it keeps the checkpoint that it needs, whatever its parent drops", async () => {
  const home = await freshHome();
  const store = home.store as MemoryStore;
  await create(home, "a", { rounds: 12, checkpoints: { every_rounds: 2, keep_last: 1 } });
  // The parent is cut off after its second checkpoint, then forked, then ends and drops all but its last one.
  while ((await store.read("a", { kinds: ["note/checkpoint"] })).length < 2) {
    const cut = store.restarted({ crash_after_appends: 4 });
    await execute(home, "a", cut).catch((error) => ok(error instanceof Crashed, error));
  }
  const round = (await store.read("a", { kinds: ["round"] })).length;
  ok(round === 4 || round === 3, `${round} rounds`);
  await fork(home, "a", { round, id: "b" });
  const whole = await execute(home, "a", store.restarted());
  const [own] = (await store.read("b", { kinds: ["note/checkpoint"] })).map(({ value }) => JSON.parse(value));
  ok(own.dir.startsWith(`${home.dir}/checkpoints/b/`), own.dir);
  const ended = await execute(home, "b");
  deepStrictEqual(same(ended), same(whole));
  strictEqual(ended.recoveries[0]!.batches_redone, round - own.number);
});

Deno.test("fork: killed after any append and resumed, and forked again, it ends as one that was not", async () => {
  const home = await freshHome();
  const store = home.store as MemoryStore;
  await create(home, "a");
  await execute(home, "a");
  const overrides = ["trainer.optimizer.lr=0.02"];
  await fork(home, "a", { round: 2, id: "calm", overrides });
  const counting = store.restarted();
  const calm = await execute(home, "calm", counting);
  for (let n = 1; n < counting.appends; n += 3) {
    const id = `b${n}`;
    await fork(home, "a", { round: 2, id, overrides });
    await execute(home, id, store.restarted({ crash_after_appends: n })).catch((error) =>
      ok(error instanceof Crashed, error)
    );
    deepStrictEqual(same(await execute(home, id, store.restarted())), same(calm));
  }
  for (const round of [2, 4, 6]) {
    const id = `c${round}`;
    const { parent } = await fork(home, "calm", { round, id });
    deepStrictEqual([parent?.run, (await residentRows(store, (await store.head(id))!)).length > 0], ["calm", true]);
    deepStrictEqual(same(await execute(home, id)), same(calm));
  }
  // A round that the fork itself took over is found where it was closed; the settings are the fork's.
  strictEqual((await fork(home, "calm", { round: 1, id: "c1" })).parent?.run, "a");
  const early = await execute(home, "c1");
  strictEqual(early.status, "done");
  notStrictEqual(early.digest, calm.digest);
});

Deno.test("fork: what the prefix has fixed is refused by name, all at once, and nothing is recorded", async () => {
  const home = await freshHome();
  await create(home, "a");
  await execute(home, "a");
  await writeFakeModel(`${home.dir}/other`, 0.1);
  for (const name of ["config.json", "model.safetensors"]) await Deno.writeTextFile(`${home.dir}/other/${name}`, "");
  const refused = async (overrides: string[], words: RegExp, round = 2) => {
    await rejects(fork(home, "a", { round, id: "b", overrides, cwd: home.dir }), (error: Error) => {
      match(error.message, words);
      return true;
    });
    strictEqual(await home.store.head("b"), null);
  };
  await refused(["model.path=other", "seed=4"], /prefix has fixed:\n {2}seed: .*\n {2}model: every version/);
  await refused(["data.train.0.path=model/config.json"], /data: the draws of the prefix/);
  await refused(["prompts_per_round=4"], /prompts_per_round: which draw comes next/);
  await refused(["trainer.dtype=bfloat16"], /trainer.dtype: .*rebuilt with it/);
  await refused(["trainer.optimizer.weight_decay=0.1"], /weight_decay: .*on or off/);
  await refused(["rounds=1"], /rounds: is 1, and the prefix has 2 rounds already/);
  await refused(["flow=supervised", "rows_per_round=2"], /flow/);
  await refused(["trainer.optimiser.lr=1"], /override trainer.optimiser.lr.*did you mean/);
  await refused([], /round 7 of 'round' as those that have closed and are kept are 1 to 6/, 7);
});

Deno.test("fork goes on with the numerics that its parent was replanned to, unless it names others", async () => {
  const home = await freshHome();
  const store = home.store as MemoryStore;
  await create(home, "parent");
  const fake = await fakeRun({
    store,
    artifacts: home.artifacts,
    run: "parent",
    dir: home.dir,
    rows: { train: rowsOf(16) },
  });
  let trains = 0;
  fake.trainer.hook = ({ op }, moment) => {
    if (op !== "train" || moment !== "begin" || ++trains !== 4) return;
    fake.trainer.forget();
    throw new OutOfMemoryError("CUDA out of memory", { exception: "OutOfMemoryError", signal: null });
  };
  const { definition, config } = await recordedDefinition((await store.head("parent"))!);
  const engine = new Engine({ store, artifacts: home.artifacts, resources: fake.resources });
  strictEqual((await engine.execute("parent", definition.build(config))).status, "done");
  const cutOf = async (round: number, overrides: string[] = []) => {
    const { id } = await forkRun(home, (await store.head("parent"))!, { round, overrides });
    const { trainer } = await execute(home, id);
    const last = trainer.calls.findLast(({ op }) => op === "train")!.args;
    return (last as { micro_batch_tokens_max: number }).micro_batch_tokens_max;
  };
  const replans = await store.read("parent", { kinds: ["note/replan"] });
  const { round, to } = JSON.parse(replans[0]!.value) as Replan;
  deepStrictEqual([replans.length, to], [1, 2048]);
  deepStrictEqual([await cutOf(round! - 1), await cutOf(round!)], [4096, 2048]);
  strictEqual(await cutOf(round!, ["trainer.micro_batch_tokens_max=512"]), 512);
});
