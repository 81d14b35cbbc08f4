import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import {
  ArtifactStore,
  defineStage,
  Engine,
  type ForkOptions,
  graph,
  type Outcome,
  prefixOf,
  type Ref,
  type RoundRecord,
  type RunHead,
  SqliteStore,
  type Store,
} from "../../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";

const Config = z.strictObject({
  seed: z.int().default(0),
  base: z.int().default(1),
  gain: z.int().default(1),
  rounds: z.int().default(4),
  lag: z.int().default(0),
  judge: z.string().nullable().default("strict"),
});
type Config = z.infer<typeof Config>;

/** Bodies that ran, by key, of all tests' engines since the last `take`. */
const started: string[] = [];
const take = () => started.splice(0).sort();

function stage<In extends z.ZodType, Out extends z.ZodType>(
  name: string,
  input: In,
  output: Out,
  body: (input: z.output<In>) => z.input<Out>,
) {
  return defineStage({
    name,
    version: 1,
    input,
    output,
    run(input, ctx) {
      started.push(ctx.key);
      ctx.tally({ [name]: 1 });
      return body(input as z.output<In>);
    },
  });
}

const N = z.number();
const prepare = stage(
  "prepare",
  z.strictObject({ base: N }),
  z.strictObject({ n: N }),
  ({ base }) => ({ n: base }),
);
const kept = { ...prepare, fork: { keeps: true } };
const remade = { ...prepare, fork: { anew: true } };
const readingFiles = { ...prepare, fork: { reads: "files" } };
const list = stage(
  "list",
  z.strictObject({ count: N }),
  z.array(N),
  ({ count }) => [...Array(count).keys()],
);
// Longer than a row holds: the value moves to an artifact, which the child refers to.
const judgeOne = stage(
  "judge_one",
  z.strictObject({ item: N, n: N, judge: z.string() }),
  z.string(),
  ({ item, n, judge }) => `${judge} ${n + item} ${"x".repeat(70_000)}`,
);
const summary = stage(
  "summary",
  z.strictObject({ judged: z.array(z.string()) }),
  z.array(z.string()),
  ({ judged }) => judged.map((text) => text.slice(0, 8)),
);
const sample = stage(
  "sample",
  z.strictObject({ item: N, n: N }),
  N,
  ({ item, n }) => item + 10 * n,
);
const train = stage(
  "train",
  z.strictObject({ groups: z.array(N), n: N, gain: N }),
  z.strictObject({ n: N, trace: z.string() }),
  ({ groups, n, gain }) => ({ n: n + gain, trace: groups.join(" ") }),
);
const save = stage(
  "save",
  z.strictObject({ n: N, trace: z.string() }),
  z.string(),
  ({ n, trace }) => `${n}: ${trace}`,
);

/**
 * Something to start from, a judgement beside the loop, a loop before the loop, and something that
 * only its end makes.
 */
const countingFrom = (first: typeof prepare) =>
  graph("counting", Config, (g, config) => {
    const begin = g.stage(first, { base: config.base });
    const problems = g.stage(list, { count: 2 }, { as: "problems" });
    const judge = config.judge;
    const judgement = judge === null
      ? null
      : g.stage(summary, { judged: g.map(judgeOne, problems, { n: begin.field("n"), judge }) });
    const warm = g.loop("warm", { times: 2, carry: { n: begin.field("n") } }, (r) => {
      const next = r.stage(prepare, { base: r.carried("n") });
      return { n: next.field("n") };
    });
    const carry = { n: warm.n, trace: g.constant("") };
    const rounds = g.loop("round", { times: config.rounds, carry }, (r) => {
      const items = r.stage(list, { count: r.index });
      const groups = r.map(sample, items, { n: r.carried("n", { lag: config.lag }) });
      const next = r.stage(train, { groups, n: r.carried("n"), gain: config.gain });
      return { n: next.field("n"), trace: next.field("trace") };
    });
    return { saved: g.stage(save, { n: rounds.n, trace: rounds.trace }), judgement };
  });
const counting = countingFrom(prepare);

type Home = { store: Store; artifacts: ArtifactStore };
type Settings = z.input<typeof Config>;

async function home(store: Store = new MemoryStore()): Promise<Home> {
  return { store, artifacts: new ArtifactStore(await Deno.makeTempDir({ prefix: "fork_test_" })) };
}

/** Executes a run that is created if it is not there. */
async function execute({ store, artifacts }: Home, id: string, config: Settings): Promise<Outcome> {
  const engine = new Engine({ store, artifacts, backoff: { first_ms: 0, max_ms: 0 } });
  if (await store.head(id) === null) await engine.create(counting, config, { id });
  return await engine.execute(id, counting.build(config));
}

type Forking = { from: string; to: string; config: Settings } & Partial<ForkOptions> & {
  round: number;
  /** What the graph begins with. */
  first?: typeof prepare;
};

async function fork(
  { store, artifacts }: Home,
  { from, to, config, first = prepare, ...options }: Forking,
): Promise<RunHead> {
  const run = (await store.head(from))!;
  const prefix = await prefixOf({ store, artifacts }, {
    ...options,
    run,
    graph: countingFrom(first).build(config),
  });
  return await new Engine({ store, artifacts }).create(counting, config, { id: to, prefix });
}

/** The totals of a run's last closed round. */
async function total(store: Store, run: string): Promise<Record<string, number>> {
  const [row] = await store.read(run, {
    kinds: ["round"],
    prefix: "round/",
    newest_first: true,
    limit: 1,
  });
  return (JSON.parse(row!.value) as RoundRecord).total;
}

Deno.test("a fork at any round ends as its parent did, without its prefix's work", async () => {
  const stores = [new MemoryStore(), new SqliteStore(`${await Deno.makeTempDir()}/holdfast.db`)];
  for (const store of stores) {
    const at = await home(store);
    const whole = await execute(at, "a", {});
    strictEqual(whole.status, "done");
    take();
    for (const [loop, closed] of [["round", 4], ["warm", 2]] as const) {
      for (let round = 0; round <= closed; round++) {
        const to = `${loop}-${round}`;
        const { parent, status } = await fork(at, { from: "a", to, config: {}, loop, round });
        deepStrictEqual([parent?.run, parent?.round, status], ["a", round, "created"]);
        deepStrictEqual(await execute(at, to, {}), whole);
        const keys = take();
        const rounds = new Set(
          keys.filter((key) => key.startsWith(`${loop}/`)).map((key) => key.split("/")[1]),
        );
        deepStrictEqual([...rounds].map(Number).sort(), [1, 2, 3, 4].slice(round, closed));
        ok(keys.every((key) => !/^(prepare|problems|judge_one|summary)/.test(key)), keys.join(" "));
        deepStrictEqual(await total(store, to), await total(store, "a"));
      }
    }
    await store.close();
  }
});

Deno.test("an override acts from the next round on; rounds may be more", async () => {
  const at = await home();
  await execute(at, "a", {});
  const config = { gain: 5, rounds: 6 };
  await fork(at, { from: "a", to: "b", config, round: 2 });
  // Warm-up leaves 1; rounds 1 and 2 add 1 each, rounds 3 to 6 add 5 each; round 6 samples six
  // items at 3 + 15.
  const { output } = await execute(at, "b", config) as { output: { saved: string } };
  strictEqual(output.saved, "23: 180 181 182 183 184 185");
  const carried = (await at.store.read("b", { kinds: ["round"], prefix: "round/" }))
    .map(({ key, value }) => [key, (JSON.parse(value) as RoundRecord).carried.n]);
  deepStrictEqual(carried, [["round/2", 3], ["round/3", 8], ["round/4", 13], ["round/5", 18], [
    "round/6",
    23,
  ]]);
});

Deno.test("what only the child carries starts as in a first round", async () => {
  const at = await home();
  const growing = (more: boolean) =>
    graph("growing", z.strictObject({}), (g) => {
      const carry = { n: g.constant(1), ...(more ? { extra: g.constant(100) } : {}) };
      return g.loop("round", { times: 4, carry }, (r) => ({
        n: r.stage(prepare, { base: r.carried("n") }).field("n"),
        ...(more
          ? {
            extra: r.stage(sample, { item: r.carried("extra") as Ref<number>, n: r.carried("n") }),
          }
          : {}),
      }));
    });
  const engine = new Engine(at);
  await engine.create(growing(false), {}, { id: "a" });
  await engine.execute("a", growing(false).build({}));
  for (const round of [2, 4]) {
    const run = (await at.store.head("a"))!;
    const child = growing(true).build({});
    const prefix = await prefixOf(at, { run, graph: child, round });
    await engine.create(growing(true), {}, { id: `b${round}`, prefix });
    const outcome = await engine.execute(`b${round}`, child);
    deepStrictEqual(outcome, { status: "done", output: { n: 1, extra: 100 + 10 * (4 - round) } });
  }
});

Deno.test("a fork may not change what its loop starts from, but for a kept stage", async () => {
  const at = await home();
  await execute(at, "a", {});
  const config = { base: 9 };
  await rejects(fork(at, { from: "a", to: "b", config, round: 2 }), (error: Error) => {
    ok(/'prepare' .*not the recorded one/.test(error.message), error.message);
    return error.name === "ReplayDriftError";
  });
  strictEqual(await at.store.head("b"), null);
  await fork(at, { from: "a", to: "b", config, round: 2, first: kept });
  const { output } = await execute(at, "b", config) as { output: { saved: string } };
  strictEqual(output.saved, "5: 40 41 42 43");
  // Before the first round nothing was made from it yet.
  take();
  await fork(at, { from: "a", to: "c", config, round: 0, loop: "warm", first: kept });
  const anew = await execute(at, "c", config) as { output: { saved: string } };
  deepStrictEqual([anew.output.saved, take().filter((key) => !key.includes("/"))], [
    "13: 120 121 122 123",
    ["judge_one#0", "judge_one#1", "prepare", "problems", "save", "summary"],
  ]);
});

Deno.test("a fork reruns a stage that asks for it if its input would differ", async () => {
  const at = await home();
  await execute(at, "a", {});
  take();
  const options = { from: "a", config: { base: 9 }, loop: "warm", round: 2, first: remade };
  await fork(at, { ...options, to: "b" });
  const { output } = await execute(at, "b", { base: 9 }) as { output: { saved: string } };
  strictEqual(output.saved, "5: 40 41 42 43", "the rounds stand");
  const runs = take();
  deepStrictEqual([runs.includes("prepare"), runs.includes("warm/2/prepare")], [true, false]);
  await fork(at, { ...options, config: { base: 1 }, to: "c" });
  await execute(at, "c", { base: 1 });
  ok(!take().includes("prepare"), "the same input is taken over");
});

Deno.test("a fork takes nothing over from a stage whose other source has changed", async () => {
  const at = await home();
  await execute(at, "a", {});
  take();
  const options = { from: "a", config: {}, round: 0, loop: "warm", first: readingFiles };
  await fork(at, { ...options, to: "b", changed: ["rows"] });
  await execute(at, "b", {});
  ok(!take().includes("prepare"));
  await fork(at, { ...options, to: "c", changed: ["files"] });
  await execute(at, "c", {});
  ok(take().includes("prepare"));
});

Deno.test("work beside the loop is inherited whole or redone whole", async () => {
  const at = await home();
  await execute(at, "a", { judge: "strict" });
  take();
  await fork(at, { from: "a", to: "b", config: { judge: "mild" }, round: 4 });
  const { output } = await execute(at, "b", { judge: "mild" }) as {
    output: { judgement: string[] };
  };
  deepStrictEqual(output.judgement, ["mild 1 x", "mild 2 x"]);
  deepStrictEqual(take(), ["judge_one#0", "judge_one#1", "problems", "save", "summary"]);
  await fork(at, { from: "a", to: "c", config: { judge: null }, round: 4 });
  deepStrictEqual(await execute(at, "c", { judge: null }), {
    status: "done",
    output: { saved: "5: 40 41 42 43", judgement: null },
  });
  deepStrictEqual(take(), ["save"]);
});

Deno.test("a fork of a fork finds each round where it was closed, with a lag too", async () => {
  const at = await home();
  const whole = await execute(at, "a", { lag: 1 });
  await fork(at, { from: "a", to: "b", config: { lag: 1 }, round: 3 });
  deepStrictEqual(await execute(at, "b", { lag: 1 }), whole);
  for (const [round, run] of [[4, "b"], [3, "b"], [2, "a"], [1, "a"]] as const) {
    const to = `c${round}`;
    const head = await fork(at, { from: "b", to, config: { lag: 1 }, round });
    strictEqual(head.parent?.run, run);
    deepStrictEqual(await execute(at, to, { lag: 1 }), whole);
  }
});

Deno.test("a loop or round that does not exist is refused, and nothing recorded", async () => {
  const at = await home();
  await execute(at, "a", {});
  const refused = async (options: Partial<Forking>, words: RegExp) => {
    await rejects(
      fork(at, { from: "a", to: "b", config: {}, round: 1, ...options }),
      (error: Error) => {
        ok(words.test(error.message), error.message);
        return true;
      },
    );
    strictEqual(await at.store.head("b"), null);
  };
  await refused({ round: 5 }, /round 5 of 'round' because only its closed rounds 1 to 4 are kept/);
  await refused({ loop: "step" }, /'step' because its loops are: warm,round/);
  await new Engine(at).create(counting, {}, { id: "new" });
  await refused({ from: "new" }, /round 1 of 'round' because none of its rounds has closed/);
  await refused(
    { from: "new", round: 0 },
    /before it has finished 'warm', which 'round' starts from/,
  );
});

Deno.test("a fork ends alike, whenever its parent and itself are killed", async () => {
  for (const lag of [0, 2]) {
    const calm = await execute(await home(), "calm", { lag });
    const crash = fc.integer({ min: 1, max: 40 });
    const plans = fc.record({
      parent: crash,
      child: crash,
      round: fc.nat(),
      loop: fc.constantFrom("round", "warm"),
    });
    await fc.assert(
      fc.asyncProperty(plans, async (plan) => {
        const first = new MemoryStore();
        const { artifacts } = await home();
        const crashing = first.restarted({ crash_after_appends: plan.parent });
        await execute({ store: crashing, artifacts }, "a", { lag }).catch(expectCrash);
        const store = first.restarted();
        const closed =
          (await store.read("a", { kinds: ["round"], prefix: `${plan.loop}/` })).length;
        const round = plan.round % (closed + 1);
        const forked = await fork({ store, artifacts }, {
          from: "a",
          to: "b",
          config: { lag },
          loop: plan.loop,
          round,
        })
          .catch((error) => ok(/before it has finished/.test(error.message)));
        if (!forked) return strictEqual(round, 0); // Killed before there was anything to start from.
        const cut = store.restarted({ crash_after_appends: plan.child });
        await execute({ store: cut, artifacts }, "b", { lag }).catch(expectCrash);
        deepStrictEqual(await execute({ store: store.restarted(), artifacts }, "b", { lag }), calm);
      }),
      { numRuns: 40 },
    );
  }
});

function expectCrash(error: unknown): void {
  if (!(error instanceof Crashed)) throw error;
}
