import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { z } from "zod";
import {
  defineStage,
  type Graph,
  graph,
  type GraphDefinition,
  type Outcome,
} from "../../../engine/mod.ts";
import { Crashed, type MemoryStore } from "../../../testing/mod.ts";
import { bench, NoConfig, Sampler, Trainer } from "../fixtures.ts";

const TIMES = 4;
const Policy = z.strictObject({ version: z.number(), trained_on: z.array(z.number()) });

const draw = defineStage({
  name: "draw",
  version: 1,
  input: z.strictObject({ round: z.number() }),
  output: z.array(z.string()),
  run: ({ round }) => [`${round}a`, `${round}b`],
});
const generate = defineStage({
  name: "generate",
  version: 1,
  runs_on: "sampler",
  phase: "generation",
  input: z.strictObject({ item: z.string(), policy: Policy }),
  output: z.strictObject({ prompt: z.string(), version: z.number() }),
  async run({ item, policy }, ctx) {
    await ctx.resource(Sampler).run(ctx, { answer: null });
    ctx.tally({ generated: 1 });
    return { prompt: item, version: policy.version };
  },
});
const train = defineStage({
  name: "train",
  version: 1,
  runs_on: "trainer",
  phase: "training",
  input: z.strictObject({
    groups: z.array(z.strictObject({ prompt: z.string(), version: z.number() })),
    policy: Policy,
  }),
  output: Policy,
  async run({ groups, policy }, ctx) {
    await ctx.resource(Trainer).run(ctx, groups);
    return {
      version: policy.version + 1,
      trained_on: [...policy.trained_on, ...groups.map((group) => group.version)],
    };
  },
});

type Definition = GraphDefinition<
  Record<string, never>,
  Record<string, never>,
  z.infer<typeof Policy>
>;

function online(lag: number): Definition {
  return graph(
    "online",
    NoConfig,
    (g) =>
      g.loop(
        "round",
        { times: TIMES, carry: { policy: g.constant({ version: 0, trained_on: [] as number[] }) } },
        (r) => {
          const prompts = r.stage(draw, { round: r.index });
          const groups = r.map(generate, prompts, { policy: r.carried("policy", { lag }) });
          return { policy: r.stage(train, { groups, policy: r.carried("policy") }) };
        },
      ).policy,
  );
}

/** Each round trains on what the policy of `lag` rounds before it sampled. */
const TRAINED_ON: Record<number, number[]> = {
  0: [0, 0, 1, 1, 2, 2, 3, 3],
  1: [0, 0, 0, 0, 1, 1, 2, 2],
  2: [0, 0, 0, 0, 0, 0, 1, 1],
};

Deno.test("lag L: round k samples with the policy of round k-1-L, or the start", async () => {
  for (const lag of [0, 1, 2]) {
    const { outcome } = await undisturbed(lag);
    deepStrictEqual(outcome, {
      status: "done",
      output: { version: TIMES, trained_on: TRAINED_ON[lag] },
    });
  }
});

/** Runs with trainers that answer at once. */
async function undisturbed(lag: number): Promise<{ outcome: Outcome; store: MemoryStore }> {
  const used = bench({ slots: { sampler: 2 } });
  const stop = answerTrainer(used.trainer);
  const definition = online(lag);
  await used.engine.create(definition, {}, { id: "run" });
  const outcome = await used.engine.execute("run", definition.build({}));
  stop();
  return { outcome, store: used.store };
}

/** Finishes every training task as it comes. */
function answerTrainer(trainer: ReturnType<typeof bench>["trainer"]): () => void {
  let stopped = false;
  const next = (): Promise<void> =>
    trainer.until(() => trainer.open.size > 0).then(() => {
      if (stopped) return;
      for (const task of [...trainer.open.values()]) task.finish(null);
      return next();
    });
  next();
  return () => (stopped = true);
}

Deno.test("lag L: generation is ahead of training by L rounds, and no further", async () => {
  for (const lag of [0, 1, 2]) {
    const used = bench({ slots: { sampler: 2, trainer: 1 } });
    const definition = online(lag);
    await used.engine.create(definition, {}, { id: "run" });
    const outcome = used.engine.execute("run", definition.build({}));
    for (let round = 1; round <= TIMES; round++) {
      const training = await used.trainer.task(`round/${round}/train`);
      const ahead = Math.min(TIMES, round + lag);
      await used.sampler.until(() =>
        used.sampler.finished.includes(`round/${ahead}/generate#${ahead}b`)
      );
      await manyTurns();
      // While round k trains, the rounds up to k + lag have been sampled, and none after them was
      // started.
      strictEqual(used.sampler.started.length, 2 * ahead);
      training.finish(null);
    }
    strictEqual((await outcome).status, "done");
  }
});

Deno.test("lag L: a different carried value is read as soon as it exists", async () => {
  const used = bench({ slots: { sampler: 2, trainer: 1 } });
  const after = defineStage({
    name: "after",
    version: 1,
    input: z.strictObject({ cursor: z.number() }),
    output: z.number(),
    run: ({ cursor }) => cursor + 1,
  });
  const definition = graph("online", NoConfig, (g) => {
    const start = {
      policy: g.constant({ version: 0, trained_on: [] as number[] }),
      cursor: g.constant(0),
    };
    return g.loop("round", { times: 2, carry: start }, (r) => {
      const cursor = r.stage(after, { cursor: r.carried("cursor") });
      const prompts = r.stage(draw, { round: cursor });
      const groups = r.map(generate, prompts, { policy: r.carried("policy", { lag: 1 }) });
      return { policy: r.stage(train, { groups, policy: r.carried("policy") }), cursor };
    });
  });
  await used.engine.create(definition, {}, { id: "run" });
  const outcome = used.engine.execute("run", definition.build({}));
  const first = await used.trainer.task("round/1/train");
  // Round 1 still trains; round 2 has gone on from its cursor and sampled.
  await used.sampler.until(() => used.sampler.finished.includes("round/2/generate#2b"));
  first.finish(null);
  (await used.trainer.task("round/2/train")).finish(null);
  deepStrictEqual((await outcome).status, "done");
});

Deno.test("lag L: a run that crashes after any append ends like one that never did", async () => {
  for (const lag of [0, 1, 2]) {
    const { outcome, store } = await undisturbed(lag);
    for (let crash = 1; crash <= store.appends; crash += 1) {
      const resumed = await crashAndResume(online(lag), crash);
      deepStrictEqual(resumed.outcome, outcome);
      const rows = resumed.store.rows("run");
      deepStrictEqual(roundRows(rows), roundRows(store.rows("run")));
      const results = rows.filter((row) => row.kind === "result").map((row) => row.key);
      strictEqual(new Set(results).size, results.length);
    }
  }
});

function roundRows(rows: ReturnType<MemoryStore["rows"]>): unknown[] {
  return rows.filter((row) => row.kind === "round").map((row) => {
    const { open_after_seq: _, ...rest } = JSON.parse(row.value);
    return { key: row.key, ...rest };
  });
}

async function crashAndResume(
  definition: Definition,
  crash: number,
): Promise<{ outcome: Outcome; store: MemoryStore }> {
  const built: Graph<unknown> = definition.build({});
  const before = bench({ slots: { sampler: 2 } });
  await before.engine.create(definition, {}, { id: "run" });
  const dying = before.store.restarted({ crash_after_appends: crash });
  const first = bench({ store: dying, slots: { sampler: 2 } });
  const stops = [answerTrainer(first.trainer)];
  await rejects(first.engine.execute("run", built), Crashed);
  const store = dying.restarted();
  const completed = store.rows("run").filter((row) => row.kind === "result").map((row) => row.key);
  const second = bench({ store, slots: { sampler: 2 } });
  stops.push(answerTrainer(second.trainer));
  const outcome = await second.engine.execute("run", built);
  for (const stop of stops) stop();
  const again = [...second.sampler.started, ...second.trainer.started].filter((key) =>
    completed.includes(key)
  );
  deepStrictEqual(again, [], "a completed body was started again");
  ok(new Set(second.sampler.started).size === second.sampler.started.length);
  return { outcome, store };
}

async function manyTurns(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
}
