import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { readConfig } from "../../../configs/mod.ts";
import { type RoundRecord, type RunHead } from "../../../engine/mod.ts";
import { flowDefinition, type RowTables, SHIPPED } from "../../../flows/mod.ts";
import {
  collectGarbage,
  createRun,
  forkRun,
  type Home,
  readCheckpoints,
  runView,
  startOf,
  verifyRun,
} from "../../../runs/mod.ts";
import { asStarted, resolvedStart } from "../../../runs/start/start_from.ts";
import { Crashed, type MemoryStore, writeFakeModel } from "../../../testing/mod.ts";
import type { VersionNote } from "../../../workers/mod.ts";
import { TrackPoints } from "../../../runs/tracking/track_points.ts";
import { tableOf } from "../../../data/mod.ts";
import { rowsOf } from "../../flows/fixtures.ts";
import { pairsOf } from "../../flows/preference_fixtures.ts";
import { executeFake, fakeConfig, fakeRedo, freshFakeHome } from "../fake_home.ts";

const ROWS = { train: rowsOf(16) };
const PAIRS = { train: pairsOf(16) };
/** What another release has recorded about itself. */
const EARLIER = { holdfast: "0.0.9", sources: "f".repeat(64), commit: "0123456789ab" };
const SAVED = { checkpoints: { every_rounds: 1, keep_last: 9 } };

type Changes = { rows?: RowTables } & Record<string, unknown>;

/** Records a run of a flow, which may start from another one. */
async function create(
  home: Home,
  id: string,
  { rows = ROWS, flow = "online", ...changes }: Changes = {},
): Promise<RunHead> {
  const { seed, rounds, model, data, trainer, checkpoints, ...online } = fakeConfig(home);
  const common = { seed, rounds, model, data, trainer, checkpoints };
  const settings = flow === "online" ? online : { ...common, flow };
  const config = readConfig({ ...common, ...settings, ...changes });
  const definition = flowDefinition(config.flow);
  const starting = await resolvedStart(home, definition, { config, rows });
  return await createRun(home, definition, { ...starting, id, entry: `${SHIPPED}${config.flow}` });
}

/** What the rounds of a run passed on, by number. */
async function carried(home: Home, id: string): Promise<Record<number, unknown>> {
  const rows = await home.store.read(id, { kinds: ["round"] });
  const records = rows.map(({ value }) => JSON.parse(value) as RoundRecord);
  return Object.fromEntries(
    records.map(({ round, carried, total }) => [round, { carried, total }]),
  );
}

/** A copy of a run, as another release would have recorded it. */
async function foreign(home: Home, id: string, changed: Partial<RunHead> = {}): Promise<void> {
  const head = (await home.store.head("a"))!;
  const rows = await home.store.read("a");
  await home.store.create({ ...head, id, packages: JSON.stringify(EARLIER), ...changed }, rows);
}

const FLOWS: Record<string, Record<string, unknown>> = {
  "grpo": {},
  "grpo with a lag": { lag: 1 },
  "ppo": { algorithm: { name: "ppo" } },
  "dapo that reuses groups": { algorithm: { name: "dapo", surplus: "reuse" } },
  "normalised rewards": {
    reward: [{ name: "length", unit: "characters", max: 8, normalise: {} }],
  },
  "sft": { flow: "supervised", rows_per_round: 3, algorithm: { name: "sft" } },
  "dpo": { flow: "preference", pairs_per_round: 3, algorithm: { name: "dpo" }, rows: PAIRS },
  "kto": { flow: "preference", pairs_per_round: 3, algorithm: { name: "kto" }, rows: PAIRS },
  "a reward model": {
    flow: "preference",
    pairs_per_round: 3,
    algorithm: { name: "reward_model" },
    rows: PAIRS,
  },
};

for (const [name, flow] of Object.entries(FLOWS)) {
  Deno.test(`a run that starts from another one's round passes on the same: ${name}`, async () => {
    const home = await freshFakeHome();
    const { rows = ROWS } = flow as { rows?: RowTables };
    await create(home, "a", { ...flow, ...SAVED });
    const whole = await executeFake(home, "a", { rows });
    strictEqual(whole.status, "done");
    const head = await create(home, "b", { ...flow, start_from: "a@3" });
    deepStrictEqual([head.parent, JSON.parse(head.config).start_from], [null, "a@3"]);
    const ended = await executeFake(home, "b", { rows });
    deepStrictEqual([ended.status, ended.recoveries], ["done", []]);
    const [before, after] = [await carried(home, "a"), await carried(home, "b")];
    if (flow.lag) { // The first round samples with the policy of round 3, not of round 2.
      deepStrictEqual(Object.keys(after), ["2", "3", "4", "5", "6"]);
      deepStrictEqual([after[2], after[3]], [before[3], before[3]]);
      return strictEqual(ended.ledger.read, whole.ledger.read);
    }
    deepStrictEqual(after, Object.fromEntries(Object.entries(before).slice(2)));
    deepStrictEqual([ended.digest, ended.ledger], [whole.digest, whole.ledger]);
  });
}

for (const flow of ["supervised", "preference"]) {
  Deno.test(`a ${flow} run that created its model is continued with the model that it left`, async () => {
    const home = await freshFakeHome();
    const rows = flow === "preference" ? PAIRS : ROWS;
    const drawn = flow === "preference" ? { pairs_per_round: 3 } : { rows_per_round: 3 };
    const algorithm = { name: flow === "preference" ? "dpo" : "sft" };
    const common = { ...SAVED, flow, ...drawn, algorithm, rows };
    await create(home, "a", { ...common, model: { recipe: "tiny_qwen", seed: 1 } });
    const whole = await executeFake(home, "a", { rows });
    const start = (model: Record<string, unknown>) =>
      create(home, "b", { ...common, model, start_from: "a@3" });
    await rejects(
      start({ path: `${home.dir}/other` }),
      /model\.path: is .*other, and .*\/model in run 'a'/,
    );
    const [row] = await home.store.read("a", { kinds: ["result"], prefix: "create_model" });
    await start({ path: JSON.parse(row!.value).output.path });
    const ended = await executeFake(home, "b", { rows });
    deepStrictEqual([ended.status, ended.digest], ["done", whole.digest]);
  });
}

Deno.test("a run of 3 rounds and 3 more of a run that starts from it are a run of 6", async () => {
  const home = await freshFakeHome();
  await create(home, "whole");
  await create(home, "a", { rounds: 3 });
  const whole = await executeFake(home, "whole");
  await executeFake(home, "a");
  await create(home, "b", { start_from: "a" });
  const ended = await executeFake(home, "b");
  const same = ({ version, digest, ledger }: typeof ended) => ({ version, digest, ledger });
  deepStrictEqual(same(ended), same(whole));
  const steps = async (id: string) =>
    (await home.store.read(id, { kinds: ["note/version"] })).map(({ value }) =>
      JSON.parse(value) as VersionNote
    ).filter(({ number, start }) => number > 0 && !start).map((
      { number, steps },
    ) => [number, steps]);
  deepStrictEqual([...await steps("a"), ...await steps("b")], await steps("whole"));
});

Deno.test("a run can start from a start, also before that one has saved anything itself", async () => {
  const home = await freshFakeHome();
  await create(home, "a", SAVED);
  const whole = await executeFake(home, "a");
  await create(home, "b", { ...SAVED, start_from: "a@2" });
  const cut = (home.store as MemoryStore).restarted({ crash_after_appends: 4 });
  await rejects(executeFake(home, "b", { store: cut }), Crashed);
  deepStrictEqual(await home.store.read("b", { kinds: ["note/checkpoint"] }), []);
  const head = await create(home, "c", { start_from: "b" });
  strictEqual(JSON.parse(head.config).start_from, "b@2");
  strictEqual((await executeFake(home, "c")).digest, whole.digest);
  await executeFake(home, "b");
  for (const round of [2, 4]) {
    await create(home, `d${round}`, { start_from: `b@${round}` });
    strictEqual((await executeFake(home, `d${round}`)).digest, whole.digest);
  }
});

Deno.test("with a lag, the rounds before a start are none to start from", async () => {
  const home = await freshFakeHome();
  await create(home, "a", { ...SAVED, lag: 1 });
  await executeFake(home, "a");
  await create(home, "b", { ...SAVED, lag: 1, start_from: "a@3" });
  await executeFake(home, "b");
  deepStrictEqual(Object.keys(await carried(home, "b")).slice(0, 2), ["2", "3"]);
  await rejects(create(home, "c", { lag: 1, start_from: "b@2" }), {
    message: /keeps no checkpoint after round 2; a start is possible after round 3, 4, 5, 6$/,
  });
});

Deno.test("the run that it starts from may be another release's, and deleted afterwards", async () => {
  const home = await freshFakeHome();
  await create(home, "a", SAVED);
  const whole = await executeFake(home, "a");
  await foreign(home, "old", { status: "created" });
  await rejects(forkRun(home, (await home.store.head("old"))!, { round: 4 }), {
    message: /or start a new run with start_from=old: it continues from the newest checkpoint$/,
  });
  await create(home, "b", { start_from: "old@4" });
  const note = await startOf(home.store, { id: "b" });
  deepStrictEqual([note?.run, note?.round, note?.release], ["old", 4, EARLIER]);
  const read = home.store.read.bind(home.store);
  home.store.read = (run, query) => {
    ok(run !== "old" && run !== "a", `read ${run}`);
    return read(run, query);
  };
  await Deno.remove(`${home.dir}/work/a`, { recursive: true });
  strictEqual((await executeFake(home, "b")).digest, whole.digest);
});

Deno.test("gc keeps what a start needs, and only as long as that", async () => {
  const home = await freshFakeHome();
  await create(home, "a", { ...SAVED, algorithm: { name: "dapo", surplus: "reuse" } });
  const whole = await executeFake(home, "a");
  await create(home, "b", { algorithm: { name: "dapo", surplus: "reuse" }, start_from: "a@3" });
  const starts = async () =>
    (await Array.fromAsync(Deno.readDir(home.checkpointsDir("b")), ({ name }) => name))
      .filter((name) => /^\d{6}-[0-9a-f]{12}-start-[0-9a-f]{8}$/.test(name)).length;
  const gc = (rows: boolean) => collectGarbage(home, { younger_than_ms: -60_000, rows });
  await gc(true);
  strictEqual((await executeFake(home, "b")).digest, whole.digest);
  await gc(false);
  const head = (await home.store.head("b"))!;
  strictEqual((await verifyRun(home, head, { workers: fakeRedo })).equal, true);
  strictEqual(await starts(), 1);
  await gc(true); // The checkpoint of its last round is all that can be reached.
  strictEqual(await starts(), 0);
  await forkRun(home, head, { round: 6, id: "c", overrides: ["rounds=7"] });
  strictEqual((await executeFake(home, "c")).status, "done");
});

Deno.test("a start that is killed after any append ends as one that was not", async () => {
  const home = await freshFakeHome();
  const store = home.store as MemoryStore;
  await create(home, "a", SAVED);
  const whole = await executeFake(home, "a");
  await create(home, "calm", { start_from: "a@3" });
  const counting = store.restarted();
  await executeFake(home, "calm", { store: counting });
  for (let n = 1; n < counting.appends; n += 3) {
    const id = `b${n}`;
    await create(home, id, { start_from: "a@3" });
    const cut = store.restarted({ crash_after_appends: n });
    await executeFake(home, id, { store: cut }).catch((error) =>
      ok(error instanceof Crashed, error)
    );
    strictEqual((await executeFake(home, id)).digest, whole.digest, `after ${n} appends`);
  }
});

Deno.test("a start is redone from its checkpoint by verify, and by its forks", async () => {
  const home = await freshFakeHome();
  await create(home, "a", SAVED);
  const whole = await executeFake(home, "a");
  const head = await create(home, "b", { start_from: "a@3" });
  await executeFake(home, "b");
  const verified = await verifyRun(home, (await home.store.head("b"))!, { workers: fakeRedo });
  deepStrictEqual([verified.equal, verified.versions.map(({ round }) => round)], [
    true,
    ["round/3", "round/4", "round/5", "round/6"],
  ]);
  for (const round of [3, 5]) {
    await forkRun(home, head, { round, id: `c${round}` });
    strictEqual((await executeFake(home, `c${round}`)).digest, whole.digest);
  }
  await rejects(forkRun(home, head, { round: 2 }), {
    message:
      "Cannot fork run 'b' at round 2 because it started after round 3 of run 'a'. Fix: fork " +
      "that run, or from round 3 on",
  });
});

Deno.test("of two starts with one id, one is created, whole", async () => {
  const home = await freshFakeHome();
  await create(home, "a", SAVED);
  const whole = await executeFake(home, "a");
  for (let i = 0; i < 5; i++) {
    const id = `b${i}`;
    const created = await Promise.allSettled(
      [3, 3].map((round) => create(home, id, { start_from: `a@${round}` })),
    );
    const refused = created.filter((one) => one.status === "rejected");
    strictEqual(refused.length, 1);
    match(`${refused[0]!.reason}`, /because it already exists: choose a different --id/);
    strictEqual((await executeFake(home, id)).digest, whole.digest);
  }
});

Deno.test("a damaged start is not replaced by anything", async () => {
  const home = await freshFakeHome();
  await create(home, "a", SAVED);
  await executeFake(home, "a");
  await create(home, "b", { start_from: "a@3" });
  const checkpoints = home.checkpointsDir("b");
  const names = await Array.fromAsync(Deno.readDir(checkpoints), ({ name }) => name);
  const dir = `${checkpoints}/${names.find((name) => name.includes("-start-"))}`;
  for await (const { name } of Deno.readDir(dir)) {
    await Deno.remove(`${dir}/${name}`, { recursive: true });
    await Deno.writeTextFile(`${dir}/${name}`, "0.25");
  }
  strictEqual((await executeFake(home, "b")).status, "failed");
  match(
    (await home.store.head("b"))!.error!,
    /the checkpoint that the run started from is damaged/,
  );
});

Deno.test("a start needs the model with which the other run began, unchanged", async () => {
  const home = await freshFakeHome();
  await create(home, "a", SAVED);
  const whole = await executeFake(home, "a");
  await create(home, "b", { ...SAVED, start_from: "a@2" });
  strictEqual((await executeFake(home, "b")).digest, whole.digest);
  // b began with a's model too, and says so to what starts from it; so does a fork.
  await forkRun(home, (await home.store.head("b"))!, { round: 4, id: "c" });
  strictEqual((await executeFake(home, "c")).digest, whole.digest);
  for (const from of ["a@3", "b@4", "c@5"]) {
    const [id, after] = [`from_${from[0]}`, `after_${from[0]}`];
    await create(home, id, { start_from: from });
    await writeFakeModel(`${home.dir}/model`, 0.25);
    strictEqual((await executeFake(home, id)).status, "failed");
    match(
      (await home.store.head(id))!.error!,
      /Cannot open model .* its weights differ from those that the run, or the one that it started /,
    );
    await writeFakeModel(`${home.dir}/model`, 0.5);
    await create(home, after, { start_from: from });
    strictEqual((await executeFake(home, after)).digest, whole.digest);
  }
});

Deno.test("asStarted() takes a script's start for the recorded one, if it names the same run", () => {
  const recorded = { start_from: "a@3" };
  deepStrictEqual(asStarted({ start_from: "a" }, recorded), recorded);
  for (const config of [{ start_from: "b" }, { start_from: "a@4" }, {}]) {
    deepStrictEqual(asStarted(config, recorded), config);
  }
  deepStrictEqual(asStarted({ start_from: "a" }, {}), { start_from: "a" });
});

Deno.test("a start shows where it began, and its newest version", async () => {
  const home = await freshFakeHome();
  await create(home, "a", SAVED);
  await executeFake(home, "a");
  const head = await create(home, "b", { start_from: "a@3" });
  const live = { workers: [], metrics: {} };
  const { round, start, policy } = await runView(home.store, head, live);
  deepStrictEqual([round, start, policy?.number], [3, { run: "a", loop: "round", round: 3 }, 3]);
  const checkpoints = async () =>
    (await readCheckpoints(home, "b", { verify: true })).map(({ round, kept, problem }) => [
      round,
      kept,
      problem,
    ]);
  deepStrictEqual(await checkpoints(), [[3, ["start"], null]]);
  await executeFake(home, "b");
  deepStrictEqual(await checkpoints(), [[3, ["start"], null], [6, ["last", "in_use"], null]]);
});

/** Why a run cannot start from `a`, a run of six rounds. */
async function refused(
  home: Home,
  changes: Changes,
): Promise<string> {
  const error = await create(home, "b", { start_from: "a@4", ...changes }).then(
    () => null,
    (error) => error as Error,
  );
  strictEqual(error?.name, "ConfigError", String(error));
  strictEqual(await home.store.head("b"), null);
  return error!.message;
}

Deno.test("a start is refused before anything is recorded, with every reason at its setting", async () => {
  const home = await freshFakeHome();
  await create(home, "a", { checkpoints: { every_rounds: 2, keep_last: 2 } });
  await executeFake(home, "a");
  const fits = "its checkpoint and its place in the data fit only that";
  const cases: [Changes, RegExp][] = [
    [{ start_from: "none" }, /^start_from: Cannot find run 'none' in /],
    [
      { start_from: "a@3" },
      /: run 'a' keeps no checkpoint of its policy after round 3; a start is .* after round 4, 6$/,
    ],
    [
      { start_from: "a@9" },
      /keeps no checkpoint after round 9; a start is possible after round 4, 6$/,
    ],
    [
      { start_from: "a" },
      /rounds: is 6, and run 'a' is started from its round 6: .* use 7 or more$/,
    ],
    [
      { flow: "supervised", rows_per_round: 2 },
      /run 'a' is a run of 'online', .* this is 'supervised'/,
    ],
    [{ seed: 4 }, new RegExp(`^seed: is 4, and 3 in run 'a': ${fits}$`)],
    [{ prompts_per_round: 4 }, /prompts_per_round: is 4, and 2 in run 'a'/],
    [{ model: { path: "/other" } }, /model\.path: is \/other, and \S+\/model in run 'a'/],
    [{ trainer: { lora: {} } }, /trainer\.lora\.rank: is 16, and null in run 'a'/],
    [{ trainer: { engine: "deepspeed", zero: 2 } }, /engine: is deepspeed.*\n.*zero: is 2, and 0/],
    [
      { trainer: { optimizer: { name: "muon" } } },
      /optimizer\.name: is muon, and adamw in run 'a'/,
    ],
    [
      { trainer: { optimizer: { weight_decay: 0.1 } } },
      /optimizer\.weight_decay: is 0\.1, and 0 in/,
    ],
    [
      { rows: { train: rowsOf(15) } },
      /data\.train: has 15 rows with digest rows-15, and run 'a' d.*-16/,
    ],
    [
      { data: { ...fakeConfig(home).data, on_long_prompt: "drop" } },
      /data\.on_long_prompt: is drop/,
    ],
    [
      { data: { train: [{ path: "x", weight: 1 }], on_long_prompt: "unchecked" } },
      /data\.train: is a mixture by weights, and was not in run 'a'/,
    ],
  ];
  for (const [changes, why] of cases) match(await refused(home, changes), why);
  strictEqual(
    (await refused(home, { seed: 4, rounds: 4, rows: { train: rowsOf(3) } })).split("\n").length,
    3,
  );
  const free = { dropout: 0.1, threads: 2, gradient_checkpointing: true, ema_decay: 0.9 };
  const trainer = { ...free, optimizer: { lr: 0.2 } };
  await create(home, "free", { start_from: "a@4", trainer, samples_per_prompt: 4 });
});

Deno.test("a start takes defaults for settings that the other release did not have", async () => {
  const home = await freshFakeHome();
  await create(home, "a", SAVED);
  await executeFake(home, "a");
  const config = JSON.parse((await home.store.head("a"))!.config);
  delete config.trainer.dtype;
  delete config.trainer.optimizer.weight_decay;
  config.trainer.gone = 1;
  await foreign(home, "old", { config: JSON.stringify(config) });
  await create(home, "same", { start_from: "old@4" });
  const changes = { start_from: "old@4", trainer: { dtype: "bfloat16" } };
  match(
    await refused(home, { ...changes, rounds: 9 }),
    /dtype: is bfloat16, and float32 in run 'old'/,
  );
});

Deno.test("a start names what this release cannot read of the other one", async () => {
  const home = await freshFakeHome();
  const dapo = { algorithm: { name: "dapo", surplus: "reuse" } };
  await create(home, "a", { ...SAVED, ...dapo });
  await executeFake(home, "a");
  const head = (await home.store.head("a"))!;
  const rows = await home.store.read("a");
  const changed = (id: string, kind: string, change: (value: never) => void) =>
    home.store.create(
      { ...head, id },
      rows.map((row) => {
        const value = JSON.parse(row.value);
        if (row.kind === kind) change(value as never);
        return { ...row, value: JSON.stringify(value) };
      }),
    );
  await changed("old_draws", "round", ({ carried }: RoundRecord) => {
    delete (carried.draws as { pending?: number }).pending;
  });
  await changed("old_checkpoint", "note/checkpoint", (note: { files?: unknown }) => {
    delete note.files;
  });
  match(
    await refused(home, { ...dapo, start_from: "old_draws@4" }),
    /cannot read what round 4 of run 'old_draws' passed on: draws\.pending: Invalid input/,
  );
  match(
    await refused(home, { ...dapo, start_from: "old_checkpoint@4" }),
    /cannot read the checkpoints of run 'old_checkpoint': checkpoint\.files: Invalid input/,
  );
});

Deno.test("a start needs a checkpoint of every model that trains, and of a refreshed reference", async () => {
  const home = await freshFakeHome();
  const kl = { algorithm: { name: "grpo", kl_coef: 0.1 } };
  await create(home, "a", { ...SAVED, ...kl, reference: { refresh_rounds: 2 } });
  const whole = await executeFake(home, "a");
  await create(home, "same", { ...kl, start_from: "a@3", reference: { refresh_rounds: 2 } });
  strictEqual((await executeFake(home, "same")).digest, whole.digest);
  const rows = await home.store.read("a", { kinds: ["round"] });
  const { carried } = JSON.parse(rows[2]!.value) as RoundRecord;
  const { version } = carried.reference as { version: string };
  const head = (await home.store.head("a"))!;
  const others = (await home.store.read("a")).filter(({ key }) => key !== version);
  await home.store.create({ ...head, id: "less" }, others);
  const changes = { ...kl, start_from: "less@3", reference: { refresh_rounds: 2 } };
  match(
    await refused(home, changes),
    /keeps no checkpoint of its reference after round 3; .* with reference\.refresh_rounds: null, /,
  );
});

Deno.test("a start counts on: curriculum, evaluations, stops and the steps of trackers", async () => {
  const home = await freshFakeHome();
  const rows = {
    train: tableOf(await rowsOf(16).rows([...Array(16).keys()]), "mixed", [8, 8]),
    eval: rowsOf(4),
  };
  const source = { path: `${home.dir}/train.jsonl`, weight: 1 };
  const sources = [{ ...source, name: "one" }, { ...source, name: "two" }];
  const flow = {
    rows,
    data: {
      train: sources,
      eval: [{ path: source.path }],
      on_long_prompt: "unchecked",
      curriculum: {},
    },
    evaluate: { problems: 2, every_rounds: 2 },
    stop: { metric: "eval/mean_reward", patience_rounds: 9 },
  };
  await create(home, "a", { ...SAVED, ...flow });
  const whole = await executeFake(home, "a", { rows });
  const head = await create(home, "b", { ...flow, start_from: "a@3" });
  const ended = await executeFake(home, "b", { rows });
  deepStrictEqual(ended.digest, whole.digest);
  const [before, after] = [await carried(home, "a"), await carried(home, "b")];
  deepStrictEqual(after, Object.fromEntries(Object.entries(before).slice(2)));
  const names = await home.store.read("b", { kinds: ["note/evaluation"] });
  deepStrictEqual(names.map(({ key }) => key), ["round_4_greedy", "round_6_greedy"]);
  const points = new TrackPoints({ store: home.store, artifacts: home.artifacts }, head);
  const steps = (await Array.fromAsync(points.next())).flat().flatMap(({ step, round }) =>
    round ? [[round.round, step]] : []
  );
  deepStrictEqual(steps, [[4, 4], [5, 5], [6, 6]]);
});
