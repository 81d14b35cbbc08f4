import {
  deepStrictEqual,
  match,
  notStrictEqual,
  ok,
  rejects,
  strictEqual,
} from "node:assert/strict";
import { basename, dirname } from "node:path";
import {
  OutOfMemoryError,
  processOwner,
  type RoundRecord,
  type RunHead,
  writeOwner,
} from "../../../engine/mod.ts";
import { Crashed, FakeTrainer, MemoryStore, writeFakeModel } from "../../../testing/mod.ts";
import { forkRun, type ForkRunOptions, type Home, residentRows } from "../../../runs/mod.ts";
import type { Replan } from "../../../workers/mod.ts";
import type { SettingChange } from "../../../configs/mod.ts";
import { changedSettings, settingsRows } from "../../../runs/session/settings.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

type Ended = Awaited<ReturnType<typeof executeFake>>;
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
  const ofFork = rows.map(({ value }) => JSON.parse(value) as RoundRecord)
    .map(({ round, carried }) => [round, (carried.policy as { version: string }).version]);
  return Object.fromEntries([...upTo, ...ofFork]);
}

Deno.test("an unchanged fork ends as its parent, from any round", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  const whole = await executeFake(home, "a");
  strictEqual(whole.status, "done");
  for (let round = 0; round <= 6; round++) {
    const id = `b${round}`;
    await fork(home, "a", { round, id });
    const ended = await executeFake(home, id);
    deepStrictEqual(same(ended), same(whole));
    // keep_last 1 has left the checkpoint of round 6 alone: other rounds are redone from the base.
    const redone = ended.recoveries.map(({ cause, batches_redone }) => [cause, batches_redone]);
    deepStrictEqual(redone, [["fork", round === 6 ? 0 : round]]);
  }
});

Deno.test("of two forks with one id, one is recorded, whole", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  const whole = await executeFake(home, "a");
  for (let i = 0; i < 5; i++) {
    const id = `b${i}`;
    const forks = await Promise.allSettled([6, 6].map((round) => fork(home, "a", { round, id })));
    const refused = forks.filter((one) => one.status === "rejected");
    strictEqual(refused.length, 1);
    match(`${refused[0]!.reason}`, /because it already exists: choose a different --id/);
    const ended = await executeFake(home, id);
    deepStrictEqual([same(ended), ended.recoveries[0]!.batches_redone], [same(whole), 0]);
  }
});

Deno.test("a fork has the newest settings of a resumed run", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  const changed: SettingChange[] = [
    { path: "checkpoints.keep_last", read_by: "stages", from: 1, to: 5 },
    { path: "sampler.replicas", read_by: "workers", from: 1, to: 2 },
    { path: "workers.port", read_by: "workers", from: 0, to: 9001 },
  ];
  const { head: { epoch } } = await home.store.claim("a", processOwner(), { lease_ms: 1000 });
  await home.store.append("a", epoch, settingsRows(changed));
  await home.store.release("a", epoch);
  const whole = await executeFake(home, "a");
  await fork(home, "a", { round: 3, id: "b" });
  const child = await fork(home, "a", { round: 3, id: "c", overrides: ["workers.port=9002"] });
  const config = JSON.parse(child.config);
  deepStrictEqual([config.checkpoints.keep_last, config.sampler.replicas, config.workers.port], [
    5,
    1,
    9002,
  ]);
  const settingsOf = async (id: string) =>
    (await changedSettings(home.store, { id })).map(({ path }) => path);
  deepStrictEqual(await settingsOf("b"), ["sampler.replicas", "workers.port"]);
  deepStrictEqual(await settingsOf("c"), ["sampler.replicas"]);
  deepStrictEqual(same(await executeFake(home, "b")), same(whole));
});

Deno.test("a fork's override changes only what comes after the round", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  await executeFake(home, "a");
  const child = await fork(home, "a", {
    round: 3,
    id: "b",
    overrides: ["trainer.optimizer.lr=0.02", "rounds=8"],
  });
  deepStrictEqual([child.parent?.run, child.parent?.round], ["a", 3]);
  const ended = await executeFake(home, "b");
  const [before, after] = [await versions(home, "a"), await versions(home, "b")];
  for (const round of [1, 2, 3]) strictEqual(after[round], before[round]);
  for (const round of [4, 5, 6]) notStrictEqual(after[round], before[round]);
  deepStrictEqual([Object.keys(after).length, ended.ledger.read], [8, 16]);
  const redo = ended.trainer.calls.filter(({ op }) => op === "train").map(({ args }) =>
    (args as { optimizer: { lr: number } }).optimizer.lr
  );
  // A round without different rewards trains nothing.
  deepStrictEqual([[...new Set(redo)], redo], [[0.1, 0.02], redo.toSorted((a, b) => b - a)]);
});

Deno.test("a fork before the first round ends as a new run of its settings", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  await executeFake(home, "a");
  await fork(home, "a", {
    round: 0,
    id: "b",
    overrides: ["trainer.optimizer.lr=0.02", "prompts_per_round=4"],
  });
  await createFakeRun(home, "c", { trainer: { optimizer: { lr: 0.02 } }, prompts_per_round: 4 });
  const [forked, anew] = [await executeFake(home, "b"), await executeFake(home, "c")];
  deepStrictEqual([forked.digest, forked.ledger], [anew.digest, anew.ledger]);
});

Deno.test("fork: it keeps the checkpoint that it needs, whatever its parent drops", async () => {
  const home = await freshFakeHome();
  const store = home.store as MemoryStore;
  await createFakeRun(home, "a", { rounds: 12, checkpoints: { every_rounds: 2, keep_last: 1 } });
  const count = async (kind: "note/checkpoint" | "note/checkpoint_dropped" | "round") =>
    (await store.read("a", { kinds: [kind] })).length;
  // The parent is cut off after its second checkpoint, then forked, then ends and drops all but its
  // last one. Cut off between the first one's drop and the end of the round, it has none for the
  // rounds that have closed.
  const useless = async () =>
    await count("note/checkpoint_dropped") > 0 && await count("round") < 4;
  while (await count("note/checkpoint") < 2 || await useless()) {
    const cut = store.restarted({ crash_after_appends: 4 });
    await executeFake(home, "a", { store: cut }).catch((error) =>
      ok(error instanceof Crashed, error)
    );
  }
  const round = await count("round");
  ok(round >= 3 && round < 6, `${round} rounds`);
  await fork(home, "a", { round, id: "b" });
  const whole = await executeFake(home, "a", { store: store.restarted() });
  const [checkpoint] = (await store.read("b", { kinds: ["note/checkpoint"] })).map(({ value }) =>
    JSON.parse(value)
  );
  ok(checkpoint.dir.startsWith(`${home.dir}/checkpoints/b/`), checkpoint.dir);
  const ended = await executeFake(home, "b");
  deepStrictEqual(same(ended), same(whole));
  strictEqual(ended.recoveries[0]!.batches_redone, round - checkpoint.number);
});

Deno.test("a fork links again what a killed one has linked", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  const whole = await executeFake(home, "a");
  const notes = await home.store.read("a", { kinds: ["note/checkpoint"] });
  const { dir, files: [{ path }] } = JSON.parse(notes.at(-1)!.value) as {
    dir: string;
    files: [{ path: string }];
  };
  const link = `${home.checkpointsDir("b")}/${basename(dir)}/${path}`;
  writeOwner(home.checkpointsDir("b"), await home.owner("b"));
  await Deno.mkdir(dirname(link), { recursive: true });
  await Deno.link(`${dir}/${path}`, link);
  const before = await Deno.readTextFile(`${dir}/${path}`);
  await fork(home, "a", { round: 6, id: "b" });
  strictEqual(await Deno.readTextFile(`${dir}/${path}`), before);
  strictEqual((await Deno.stat(link)).ino, (await Deno.stat(`${dir}/${path}`)).ino);
  const ended = await executeFake(home, "b");
  deepStrictEqual([same(ended), ended.recoveries[0]!.batches_redone], [same(whole), 0]);
});

Deno.test("a fork writes nothing through links that a killed one has left", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  await executeFake(home, "a");
  const notes = await home.store.read("a", { kinds: ["note/checkpoint"] });
  const { dir, files } = JSON.parse(notes.at(-1)!.value) as {
    dir: string;
    files: { path: string }[];
  };
  const [name, file] = [basename(dir), files[0]!.path];
  const outside = `${home.dir}/outside`;
  const remains: Record<string, (checkpointsDir: string) => Promise<void>> = {
    checkpoint: (checkpointsDir) => Deno.symlink(outside, `${checkpointsDir}/${name}`),
    file: async (checkpointsDir) => {
      await Deno.mkdir(`${checkpointsDir}/${name}`);
      await Deno.symlink(`${outside}/${file}`, `${checkpointsDir}/${name}/${file}`);
    },
    folder: async (checkpointsDir) => {
      await Deno.mkdir(`${checkpointsDir}/${name}`);
      await Deno.symlink(outside, `${checkpointsDir}/${name}/state`);
    },
    run: (checkpointsDir) =>
      Deno.remove(checkpointsDir, { recursive: true }).then(() =>
        Deno.symlink(outside, checkpointsDir)
      ),
  };
  await Deno.mkdir(outside);
  await Deno.writeTextFile(`${outside}/${file}`, "precious");
  for (const [id, leave] of Object.entries(remains)) {
    const checkpointsDir = home.checkpointsDir(id);
    writeOwner(checkpointsDir, await home.owner(id));
    await leave(checkpointsDir);
    if (id === "run") {
      await Deno.copyFile(`${home.checkpointsDir("file")}/owner.json`, `${outside}/owner.json`);
    }
    const forked = fork(home, "a", { round: 6, id });
    if (id === "file" || id === "folder") await forked;
    else await rejects(forked, /^\w+: Cannot (remove|use) '?.*because/);
    deepStrictEqual([await Deno.readTextFile(`${outside}/${file}`)], ["precious"]);
    strictEqual((await Deno.lstat(`${outside}/${file}`)).nlink, 1);
  }
  strictEqual((await Deno.lstat(`${home.checkpointsDir("checkpoint")}/${name}`)).isSymlink, true);
});

Deno.test("a fork that is killed after any append ends as one that was not", async () => {
  const home = await freshFakeHome();
  const store = home.store as MemoryStore;
  await createFakeRun(home, "a");
  await executeFake(home, "a");
  const overrides = ["trainer.optimizer.lr=0.02"];
  await fork(home, "a", { round: 2, id: "calm", overrides });
  const counting = store.restarted();
  const calm = await executeFake(home, "calm", { store: counting });
  for (let n = 1; n < counting.appends; n += 3) {
    const id = `b${n}`;
    await fork(home, "a", { round: 2, id, overrides });
    await executeFake(home, id, { store: store.restarted({ crash_after_appends: n }) }).catch((
      error,
    ) => ok(error instanceof Crashed, error));
    deepStrictEqual(same(await executeFake(home, id, { store: store.restarted() })), same(calm));
  }
  for (const round of [2, 4, 6]) {
    const id = `c${round}`;
    const { parent } = await fork(home, "calm", { round, id });
    deepStrictEqual(
      [parent?.run, (await residentRows(store, (await store.head(id))!)).length > 0],
      ["calm", true],
    );
    deepStrictEqual(same(await executeFake(home, id)), same(calm));
  }
  // A round that the fork itself took over is found where it was closed; the settings are the
  // fork's.
  strictEqual((await fork(home, "calm", { round: 1, id: "c1" })).parent?.run, "a");
  const early = await executeFake(home, "c1");
  strictEqual(early.status, "done");
  notStrictEqual(early.digest, calm.digest);
});

Deno.test("a fork names all fixed settings at once, and records nothing", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  await executeFake(home, "a");
  await writeFakeModel(`${home.dir}/other`, 0.1);
  for (const name of ["config.json", "model.safetensors"]) {
    await Deno.writeTextFile(`${home.dir}/other/${name}`, "");
  }
  const refused = async (overrides: string[], words: RegExp, round = 2) => {
    await rejects(fork(home, "a", { round, id: "b", overrides, cwd: home.dir }), (error: Error) => {
      match(error.message, words);
      return true;
    });
    strictEqual(await home.store.head("b"), null);
  };
  await refused(
    ["model.path=other", "seed=4"],
    /prefix has fixed:\n {2}seed: .*\n {2}model: every version/,
  );
  await refused(["data.train.0.path=model/config.json"], /data: the draws of the prefix/);
  await refused(["prompts_per_round=4"], /prompts_per_round: the next draw depends/);
  await refused(["trainer.dtype=bfloat16"], /trainer.dtype: .*rebuilt with it/);
  await refused(["trainer.lora={rank: 8}"], /trainer.lora.rank: .*rebuilt with it/);
  await refused(["trainer.optimizer.weight_decay=0.1"], /weight_decay: .*on or off/);
  await refused(["rounds=1"], /rounds: is 1, but the prefix already has 2 rounds/);
  await refused(["flow=supervised", "rows_per_round=2"], /flow/);
  await refused(["trainer.optimiser.lr=1"], /override trainer.optimiser.lr.*did you mean/);
  await refused([], /round 7 of 'round' because only its closed rounds 1 to 6 are kept/, 7);
});

Deno.test("a setting that nobody reads asks nothing new of a fork", async () => {
  const home = await freshFakeHome();
  const algorithm = { name: "grpo", kl_coef: 0.1, kl_target: 0.5 };
  await createFakeRun(home, "a", { algorithm, reference: { refresh_rounds: 2 } });
  await executeFake(home, "a");
  const overrides = ["algorithm.kl_coef=0.2", `reference.path=${home.dir}/model`];
  await rejects(
    fork(home, "a", { round: 2, id: "b", overrides: overrides, cwd: home.dir }),
    /reference.path: its rounds pass on a reference[^]*algorithm.kl_coef: its rounds carry the steered weight/,
  );
  const freed = ["algorithm.kl_coef=0.2", "algorithm.kl_target=null"];
  strictEqual(
    (await fork(home, "a", { round: 2, id: "b", overrides: freed, cwd: home.dir })).parent?.run,
    "a",
  );
});

Deno.test("a fork has its parent's replanned numerics, unless it names others", async () => {
  const home = await freshFakeHome();
  const store = home.store as MemoryStore;
  await createFakeRun(home, "parent");
  const trainer = new FakeTrainer({ artifacts: home.artifacts });
  let trains = 0;
  trainer.hook = ({ op }, moment) => {
    if (op !== "train" || moment !== "begin" || ++trains !== 4) return;
    trainer.forget();
    throw new OutOfMemoryError("CUDA out of memory", {
      exception: "OutOfMemoryError",
      signal: null,
    });
  };
  strictEqual((await executeFake(home, "parent", { trainer })).status, "done");
  const cutOf = async (round: number, overrides: string[] = []) => {
    const { id } = await forkRun(home, (await store.head("parent"))!, { round, overrides });
    const { trainer } = await executeFake(home, id);
    const last = trainer.calls.findLast(({ op }) => op === "train")!.args;
    return (last as { micro_batch_tokens_max: number }).micro_batch_tokens_max;
  };
  const replans = await store.read("parent", { kinds: ["note/replan"] });
  const { round, to } = JSON.parse(replans[0]!.value) as Replan;
  deepStrictEqual([replans.length, to], [1, 2048]);
  deepStrictEqual([await cutOf(round! - 1), await cutOf(round!)], [4096, 2048]);
  strictEqual(await cutOf(round!, ["trainer.micro_batch_tokens_max=512"]), 512);
});
