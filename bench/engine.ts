/**
 * The engine alone, on SQLite with synchronous=FULL in a temporary folder; on PostgreSQL beside
 * DBOS-TS.
 */
import { z } from "zod";
import { postgresSteps } from "./postgres_steps.ts";
import { idleShare, median, numberFlags, rounded as round, timedRounds } from "./quickstart_run.ts";
import {
  ArtifactStore,
  type Context,
  defineStage,
  Engine,
  graph,
  SqliteStore,
  type Store,
} from "../engine/mod.ts";

const SERIAL_STEPS = 2000;
const REPLAYED_STEPS = 10_000;
const STAGES = 2000;
/** Steps of one burst share a commit: filling the journal is not measured. */
const BURST = 500;

type Measured = Record<string, number | null>;

/**
 * `args`: `--rounds N --warmup N`, the online and the supervised rounds of the quickstart that is
 * measured; `--repeats N --steps N` of the serial steps on PostgreSQL.
 */
export async function benchEngine(args: readonly string[]): Promise<Measured> {
  const sizes = numberFlags(args, { rounds: 20, warmup: 30, repeats: 5, steps: 1000 });
  const dir = await Deno.makeTempDir({ prefix: "holdfast_bench_" });
  try {
    return {
      ...await serialSteps(dir),
      ...await stageOverhead(dir),
      ...await replay(dir),
      ...await postgresSteps(dir, sizes),
      ...await quickstartShare(sizes),
    };
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/** The engine's share of a round: the part in which no worker operation is with an agent. */
async function quickstartShare(
  { rounds, warmup }: { rounds: number; warmup: number },
): Promise<Measured> {
  const timed = await timedRounds([`online.rounds=${rounds}`, `warmup.rounds=${warmup}`]);
  const shares = timed.map((one) => {
    const busy = one.operations.map(({ sent_ms, ended_ms }) => ({
      from_ms: sent_ms,
      to_ms: ended_ms,
    }));
    return idleShare(one, busy);
  });
  const round_ms = timed.map(({ from_ms, to_ms }) => to_ms - from_ms);
  const operations = timed.flatMap((one) => one.operations);
  const took = (op: string) =>
    operations.filter((one) => one.op === op).map(({ sent_ms, ended_ms }) => ended_ms - sent_ms);
  return {
    quickstart_engine_share: round(median(shares)),
    quickstart_engine_ms: round(median(shares.map((share, i) => share * round_ms[i]!))),
    quickstart_round_ms: round(median(round_ms)),
    quickstart_publish_ms: round(median(took("publish"))),
    quickstart_load_ms: round(median(took("load"))),
    quickstart_generate_ms: round(median(took("generate"))),
    quickstart_train_ms: round(median(took("train"))),
  };
}

const sole = (run: (ctx: Context) => Promise<number>) =>
  graph("bench", z.strictObject({}), (g) =>
    g.stage(
      defineStage({
        name: "body",
        version: 1,
        input: z.strictObject({}),
        output: z.number(),
        run: (_, ctx) => run(ctx),
      }),
      {},
    ));

function engineOn(store: Store, dir: string): Engine {
  return new Engine({ store, artifacts: new ArtifactStore(`${dir}/artifacts`) });
}

/** One step after the other: each is durable before the next starts. */
async function serialSteps(dir: string): Promise<Measured> {
  const times_ms: number[] = [];
  const definition = sole(async (ctx) => {
    for (let step = 0; step < SERIAL_STEPS; step++) {
      const begun = performance.now();
      await ctx.step("step", () => step);
      times_ms.push(performance.now() - begun);
    }
    return SERIAL_STEPS;
  });
  const store = new SqliteStore(`${dir}/serial.db`);
  const engine = engineOn(store, dir);
  await engine.create(definition, {}, { id: "run" });
  const begun = performance.now();
  await engine.execute("run", definition.build({}));
  const seconds = (performance.now() - begun) / 1000;
  await store.close();
  times_ms.sort((a, b) => a - b);
  return {
    serial_steps_per_s: round(SERIAL_STEPS / seconds),
    serial_step_p50_ms: round(quantile(times_ms, 0.5)),
    serial_step_p99_ms: round(quantile(times_ms, 0.99)),
  };
}

/** Milliseconds of the engine for each stage of a wide map, whose results share commits. */
async function stageOverhead(dir: string): Promise<Measured> {
  const item = defineStage({
    name: "item",
    version: 1,
    input: z.strictObject({ item: z.number() }),
    output: z.number(),
    run: ({ item }) => item,
  });
  const definition = graph(
    "wide",
    z.strictObject({}),
    (g) => g.map(item, g.constant(Array.from({ length: STAGES }, (_, place) => place))),
  );
  const store = new SqliteStore(`${dir}/wide.db`);
  const engine = engineOn(store, dir);
  await engine.create(definition, {}, { id: "run" });
  const begun = performance.now();
  await engine.execute("run", definition.build({}));
  const stage_overhead_ms = round((performance.now() - begun) / STAGES);
  await store.close();
  return { stage_overhead_ms };
}

/** From the first query of a new engine to the first step that is not in the journal. */
async function replay(dir: string): Promise<Measured> {
  const drain = new AbortController();
  let dispatched_ms = 0;
  const definition = sole(async (ctx) => {
    for (let burst = 0; burst < REPLAYED_STEPS; burst += BURST) {
      await Promise.all(
        Array.from({ length: BURST }, (_, step) => ctx.step("step", () => 1, { id: burst + step })),
      );
    }
    // The first engine stops here: a draining run starts no new step.
    drain.abort();
    return await ctx.step("new", () => {
      dispatched_ms = performance.now();
      return 1;
    });
  });
  const path = `${dir}/replay.db`;
  const first = new SqliteStore(path);
  const engine = engineOn(first, dir);
  await engine.create(definition, {}, { id: "run" });
  await engine.execute("run", definition.build({}), { drain: drain.signal });
  await first.close();
  const store = new SqliteStore(path);
  const begun = performance.now();
  await engineOn(store, dir).execute("run", definition.build({}));
  await store.close();
  return { replay_steps: REPLAYED_STEPS, replay_ms: round(dispatched_ms - begun) };
}

/** Of sorted numbers. */
function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}
