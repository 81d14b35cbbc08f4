import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import type { Policy } from "../../../data/mod.ts";
import { online } from "../../../flows/online.ts";
import { Paths, Trainer, Trainers } from "../../../flows/resources.ts";
import { checkpointPolicy } from "../../../flows/stages/checkpoint_policy.ts";
import { FakeTrainer } from "../../../testing/mod.ts";
import {
  type DirectoryOwner,
  LostRecordError,
  OutOfMemoryError,
  type RecordingContext,
  type RowKind,
  writeOwner,
} from "../../../engine/mod.ts";
import type { CheckpointDropped, CheckpointNote, PolicyTrainer } from "../../../workers/mod.ts";
import { execute, onlineConfig, stores } from "../fixtures.ts";

type Stores = Awaited<ReturnType<typeof stores>>;

async function notes<T>(store: Stores["store"], kind: RowKind): Promise<T[]> {
  return (await store.read("run", { kinds: [kind] })).map(({ value }) => JSON.parse(value) as T);
}

/**
 * A finished run of eight rounds with this `checkpoints` block: what it saved, which rounds'
 * directories are left, and what is left of those whose weights are kept.
 */
async function ended(checkpoints: Record<string, unknown>) {
  const home = await stores();
  const config = onlineConfig(home.model, {
    rounds: 8,
    checkpoints: { every_rounds: 1, keep_last: 1, ...checkpoints },
  });
  const { outcome } = await execute(online, config, home);
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  const saved = await notes<CheckpointNote>(home.store, "note/checkpoint");
  const names = (dir: string) => [...Deno.readDirSync(dir)].map(({ name }) => name);
  const remaining = new Set(names(`${home.dir}/checkpoints`));
  const weights = remaining.delete("weights")
    ? names(`${home.dir}/checkpoints/weights`).map((name) => [
      saved.find(({ dir }) => dir.endsWith(name))!.round,
      names(`${home.dir}/checkpoints/weights/${name}`),
    ]).toSorted()
    : [];
  const there = saved.filter(({ dir }) => remaining.has(dir.split("/").at(-1)!));
  strictEqual(there.length, remaining.size);
  return { saved, weights, rounds: there.map(({ round }) => round) };
}

Deno.test("checkpoint_policy keeps the last ones, and every n-th round's for good", async () => {
  deepStrictEqual((await ended({})).rounds, [8]);
  deepStrictEqual((await ended({ keep_last: 3 })).rounds, [6, 7, 8]);
  deepStrictEqual((await ended({ every_rounds: 1, keep_every: 3 })).rounds, [3, 6, 8]);
});

Deno.test("checkpoint_policy keeps only the weights of every n-th round's checkpoint", async () => {
  const { rounds, weights } = await ended({ keep_weights_every: 2, keep_every: 3 });
  deepStrictEqual(rounds, [3, 6, 8]);
  deepStrictEqual(weights, [[2, ["hf"]], [4, ["hf"]]]);
  deepStrictEqual((await ended({})).weights, []);
});

for (const mode of ["max", "min"] as const) {
  Deno.test(`checkpoint_policy keeps the best by a recorded metric (${mode})`, async () => {
    const { saved, rounds } = await ended({ keep_best: { metric: "reward/mean", mode } });
    const sign = mode === "max" ? -1 : 1;
    const best = saved.toSorted((a, b) =>
      sign * (a.metric! - b.metric!) || b.number - a.number
    )[0]!;
    ok(saved.every(({ metric, metric_name }) => metric !== null && metric_name === "reward/mean"));
    deepStrictEqual(rounds, [...new Set([best.round, 8])].toSorted());
  });
}

Deno.test("checkpoint_policy reads its metric, or continues without one", async () => {
  const { saved } = await ended({ keep_best: { metric: "optim/grad_norm" } });
  ok(saved.every(({ metric }) => metric !== null && metric > 0));
  const none = await ended({ keep_best: { metric: "eval/none" } });
  deepStrictEqual([none.saved.map(({ metric }) => metric), none.rounds], [Array(8).fill(null), [
    8,
  ]]);
});

Deno.test("checkpoint_policy leaves a damaged checkpoint's directory where it is", async () => {
  const home = await stores();
  await Deno.mkdir(`${home.dir}/checkpoints/set_aside/broken`, { recursive: true });
  await Deno.mkdir(`${home.dir}/checkpoints/000001-0123456789ab-1-1`);
  await execute(online, onlineConfig(home.model), home);
  const remaining = [...Deno.readDirSync(`${home.dir}/checkpoints`)].map(({ name }) => name);
  ok(
    remaining.includes("set_aside") && !remaining.includes("000001-0123456789ab-1-1"),
    remaining.join(),
  );
  deepStrictEqual(
    [...Deno.readDirSync(`${home.dir}/checkpoints/set_aside`)].map(({ name }) => name),
    ["broken"],
  );
});

Deno.test("checkpoint_policy moves the weights that a dead engine had not moved", async () => {
  const dropped: CheckpointDropped[] = [];
  const bench = await stageBench({ dropped });
  const [moved, unmoved] = ["000001-0123456789ab-1-1", "000002-0123456789ab-1-1"];
  for (const name of [moved, unmoved]) {
    const dir = `${bench.checkpoints}/${name}`;
    dropped.push({ dir, weights: `${bench.checkpoints}/weights/${name}` });
  }
  // It died between the two moves, and before the first one.
  await Deno.mkdir(`${bench.checkpoints}/weights/${moved}/hf`, { recursive: true });
  await Deno.mkdir(`${bench.checkpoints}/${moved}/state`, { recursive: true });
  await Deno.mkdir(`${bench.checkpoints}/${moved}/ema`, { recursive: true });
  await Deno.mkdir(`${bench.checkpoints}/${unmoved}/hf`, { recursive: true });
  await bench.run();
  const names = [...Deno.readDirSync(`${bench.checkpoints}/weights`)].map(({ name }) => name);
  deepStrictEqual(names.toSorted(), [moved, unmoved]);
  for (const model of [`${moved}/hf`, `${moved}/ema`, `${unmoved}/hf`]) {
    ok(Deno.statSync(`${bench.checkpoints}/weights/${model}`).isDirectory, model);
  }
  deepStrictEqual(bench.remaining().toSorted(), [`000001-${VERSION.slice(0, 12)}-1-1`, "weights"]);
});

Deno.test("checkpoint_policy does not make a directory again for weights that a person removed", async () => {
  const dropped: CheckpointDropped[] = [];
  const bench = await stageBench({ dropped });
  const name = "000001-0123456789ab-1-1";
  dropped.push({
    dir: `${bench.checkpoints}/${name}`,
    weights: `${bench.checkpoints}/weights/${name}`,
  });
  await bench.run();
  deepStrictEqual(bench.remaining(), [`000001-${VERSION.slice(0, 12)}-1-1`]);
});

Deno.test("checkpoint_policy leaves a directory whose row is damaged, and removes the others", async () => {
  const dropped = async (prefix: string) => {
    if (prefix === "0123456789ab") throw new LostRecordError("its row is damaged");
    return await Promise.resolve([]);
  };
  const bench = await stageBench({ dropped });
  await Deno.mkdir(`${bench.checkpoints}/000001-0123456789ab-1-1`);
  await Deno.mkdir(`${bench.checkpoints}/000002-aaaaaaaaaaaa-1-1`);
  await bench.run();
  const saved = `000001-${VERSION.slice(0, 12)}-1-1`;
  deepStrictEqual(bench.remaining().toSorted(), ["000001-0123456789ab-1-1", saved]);
  match(bench.logs.at(-1)!, /^000001-0123456789ab-1-1 was not removed: its row is damaged/);
});

const VERSION = "f".repeat(64);
type StageBench = {
  known?: (checkpoints: string) => CheckpointNote[];
  starts?: (checkpoints: string) => Pick<CheckpointNote, "dir">[];
  owned?: () => void;
  owner?: DirectoryOwner | null;
  /** What is recorded of dropped checkpoints; a function: how it is read. */
  dropped?: CheckpointDropped[] | ((prefix: string) => Promise<CheckpointDropped[]>);
};

/**
 * What the stage sees of a trainer, and of the run. `owned`: what happens while the store is asked.
 */
async function stageBench(
  { known = () => [], starts = () => [], owned = () => {}, owner = null, dropped = [] }: StageBench,
) {
  const { dir } = await stores();
  const checkpoints = `${dir}/checkpoints/run`;
  await Deno.mkdir(checkpoints, { recursive: true });
  const chain = new Map(known(checkpoints).map((note) => [note.version, note]));
  const trainer = {
    writing: new Set<string>(),
    checkpoints: () => [...chain.values()],
    starts: () => starts(checkpoints),
    dropped: (version: string) => void chain.delete(version),
    save: (
      { version, number }: Policy,
      { dir, round, metric = null }: Parameters<PolicyTrainer["save"]>[1],
    ) => {
      Deno.mkdirSync(dir);
      const note: CheckpointNote = {
        version,
        dir,
        digest: "",
        world_size: 1,
        files: [],
        number,
        round,
        metric,
      };
      chain.set(version, note);
      return Promise.resolve(note);
    },
  };
  const rows: [string, unknown][] = [];
  const logs: string[] = [];
  const ctx = {
    key: "round/1/checkpoint_policy",
    epoch: 1,
    attempt: 1,
    resource: ({ name }: { name: string }) =>
      ({
        [Trainer.name]: trainer,
        [Trainers.name]: [trainer],
        [Paths.name]: { home: dir, owner, checkpoints },
      })[
        name
      ],
    record: (kind: string, _key: string, value: unknown) =>
      Promise.resolve(void rows.push([kind, value])),
    read: async ({ kinds, prefix }: { kinds: RowKind[]; prefix?: string }) => {
      if (!kinds.includes("note/checkpoint_dropped")) return [];
      const rows = Array.isArray(dropped) ? dropped : await dropped(prefix!);
      return rows.map((value) => ({ value }));
    },
    owned: () => Promise.resolve(owned()),
    emit: ({ log }: { log: string }) => void logs.push(log),
  } as unknown as RecordingContext;
  const policy = {
    version: VERSION,
    record: { sha256: VERSION, bytes: 1 },
    number: 1,
    model_path: dir,
  };
  const run = async (overrides: Record<string, unknown> = {}) =>
    await checkpointPolicy.body(
      checkpointPolicy.input.parse({ policy, round: 1, last: 1, ...overrides }),
      ctx,
    );
  const remaining = () => [...Deno.readDirSync(checkpoints)].map(({ name }) => name);
  return { checkpoints, trainer, rows, logs, policy, run, remaining };
}

Deno.test("checkpoint_policy leaves a checkpoint that is being written", async () => {
  const bench = await stageBench({
    owned: () =>
      void bench.trainer.writing.add(`${bench.checkpoints}/000002-0123456789ab-now-01234567`),
  });
  await Deno.mkdir(`${bench.checkpoints}/000002-0123456789ab-now-01234567`);
  await Deno.mkdir(`${bench.checkpoints}/000001-0123456789ab-1-1`);
  await bench.run();
  const remaining = bench.remaining();
  ok(
    remaining.includes("000002-0123456789ab-now-01234567") &&
      !remaining.includes("000001-0123456789ab-1-1"),
    remaining.join(),
  );
});

Deno.test("checkpoint_policy leaves the checkpoint that the run started from", async () => {
  const start = "000002-0123456789ab-start-01234567";
  const bench = await stageBench({ starts: (dir) => [{ dir: `${dir}/${start}` }] });
  await Deno.mkdir(`${bench.checkpoints}/${start}`);
  await Deno.mkdir(`${bench.checkpoints}/${start.replace("2", "1")}`);
  await bench.run();
  deepStrictEqual(bench.remaining(), [`000001-${VERSION.slice(0, 12)}-1-1`, start]);
});

Deno.test("checkpoint_policy removes nothing from a directory of others", async () => {
  const owner = { home: "h", store: "s", run: "run", place: "/" };
  const bench = await stageBench({ owner });
  const old = "000001-0123456789ab-1-1";
  await Deno.mkdir(`${bench.checkpoints}/${old}`);
  const save = (letter: string) =>
    bench.run({ policy: { ...bench.policy, version: letter.repeat(64) } });
  for (
    const [letter, found] of Object.entries({
      a: null,
      b: { ...owner, run: "other" },
      c: { ...owner, store: "other" },
    })
  ) {
    if (found) writeOwner(bench.checkpoints, found);
    await save(letter);
    ok(bench.remaining().includes(old), letter);
    match(
      bench.logs.at(-1)!,
      found ? /belongs to run '\w+' of \/, recorded in journal/ : /does not say which run/,
    );
  }
  writeOwner(bench.checkpoints, owner);
  await save("d");
  ok(!bench.remaining().includes(old), bench.remaining().join());
});

Deno.test("checkpoint_policy saves a round's policy again if it had no round", async () => {
  const saved = { digest: "", world_size: 1, files: [], number: 1, metric: null };
  for (const round of [null, 1]) {
    const bench = await stageBench({
      known: (
        dir,
      ) => [{ ...saved, version: VERSION, dir: `${dir}/000001-0123456789ab-now-01234567`, round }],
    });
    await Deno.mkdir(`${bench.checkpoints}/000001-0123456789ab-now-01234567`);
    await bench.run({ keep_every: 1 });
    const notes = bench.rows.map(([kind, value]) => [kind, (value as CheckpointNote).round]);
    deepStrictEqual(notes, round === null ? [["note/checkpoint", 1]] : []);
    deepStrictEqual(
      bench.remaining(),
      round === null
        ? [`000001-${VERSION.slice(0, 12)}-1-1`]
        : ["000001-0123456789ab-now-01234567"],
    );
  }
});

Deno.test("a run whose device has no room tells in which round it went on with less", async () => {
  const home = await stores();
  const trainer = new FakeTrainer({ artifacts: home.artifacts });
  let trains = 0;
  trainer.hook = ({ op }, moment) => {
    if (op !== "train" || moment !== "begin" || ++trains !== 3) return;
    trainer.forget();
    throw new OutOfMemoryError("CUDA out of memory", {
      exception: "OutOfMemoryError",
      signal: null,
    });
  };
  const { outcome } = await execute(online, onlineConfig(home.model), { ...home, trainer });
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  const cut = {
    cause: "out_of_memory",
    field: "trainer.micro_batch_tokens_max",
    from: 4096,
    to: 2048,
  };
  deepStrictEqual(await notes(home.store, "note/replan"), [{ round: 3, ...cut }]);
});
