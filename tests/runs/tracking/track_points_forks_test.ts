/**
 * Points of runs, resumes, forks and forks of forks, however their stages were interleaved. A stage
 * emits one metric, named by its key: so it shows what is lost, doubled, shifted or foreign.
 */
import { deepStrictEqual, ok } from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import {
  ArtifactStore,
  defineStage,
  Engine,
  graph,
  InvalidInputError,
  prefixOf,
  type Ref,
  type RunHead,
} from "../../../engine/mod.ts";
import { type TrackPoint, TrackPoints } from "../../../runs/tracking/track_points.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { scratch } from "../../flows/fixtures.ts";

const Config = z.strictObject({ lag: z.int(), judge: z.int() });
type Config = z.infer<typeof Config>;
const ROUNDS = { warm: 2, side: 2, round: 3 };
const LOOPS = ["warm", "side", "round"] as const;

/** The order in which stages end; each life of an engine draws another one. */
let scheduler: fc.Scheduler;

const emitting = (name: string) =>
  defineStage({
    name,
    version: 1,
    input: z.strictObject({ from: z.unknown(), judge: z.int().default(0) }),
    output: z.int(),
    async run({ judge }, ctx) {
      await scheduler.schedule(Promise.resolve());
      ctx.emit({ metrics: { [ctx.key]: judge } });
      return 1;
    },
  });
const [generate, train, evaluate] = ["generate", "train", "evaluate"].map(emitting) as [
  ReturnType<typeof emitting>,
  ReturnType<typeof emitting>,
  ReturnType<typeof emitting>,
];

/** Loops one after the other and beside each other, with evaluations around them. */
const tracked = graph("tracked", Config, (g, { lag, judge }) => {
  const start = g.constant(0) as Ref<number>;
  g.stage(evaluate, { from: start, judge }, { as: "before" });
  const loop = (name: typeof LOOPS[number], from: Ref<number>) =>
    g.loop(name, { times: ROUNDS[name], carry: { policy: from } }, (r) => {
      const lagging = r.carried("policy", name === "round" ? { lag } : {});
      const one = r.stage(generate, { from: lagging }, { as: "one" });
      const other = r.stage(generate, { from: lagging }, { as: "other" });
      const from = { one, other, policy: r.carried("policy") };
      return { policy: r.stage(train, { from }) };
    }).policy;
  const warm = loop("warm", start);
  g.stage(evaluate, { from: warm, judge }, { as: "between" });
  loop("side", start);
  const policy = loop("round", warm);
  return { after: g.stage(evaluate, { from: policy, judge }, { as: "after" }) };
});

type Life = { seed: fc.Scheduler; crash: number | null };
type Fork = { of: number; loop: typeof LOOPS[number]; round: number; judge: number; life: Life };

/** Runs of one store, each with its configuration. */
class Runs {
  #store = new MemoryStore();
  readonly #configs: Config[] = [];
  readonly #artifacts: ArtifactStore;

  constructor(dir: string) {
    this.#artifacts = new ArtifactStore(dir);
  }

  async root(lag: number, life: Life): Promise<void> {
    const config = { lag, judge: 0 };
    await this.#engine().create(tracked, config, { id: "0" });
    await this.#live(config, life);
  }

  /** Nothing if the parent has not closed that round. */
  async fork({ of, loop, round, judge, life }: Fork): Promise<void> {
    const parent = of % this.#configs.length;
    const config = { ...this.#configs[parent]!, judge };
    const run = await this.#head(parent);
    const reading = { store: this.#store, artifacts: this.#artifacts };
    const place = { loop, round: round % (ROUNDS[loop] + 1) };
    try {
      const prefix = await prefixOf(reading, { run, graph: tracked.build(config), ...place });
      await this.#engine().create(tracked, config, { id: String(this.#configs.length), prefix });
    } catch (error) {
      ok(error instanceof InvalidInputError, String(error));
      return;
    }
    await this.#live(config, life);
  }

  /** Every run as its trackers see it, after it was resumed if it had crashed. */
  async points(): Promise<{ judge: number; points: TrackPoint[] }[]> {
    return await Promise.all(this.#configs.map(async ({ judge }, n) => {
      await this.#execute(n);
      const reading = { store: this.#store, artifacts: this.#artifacts };
      const points = new TrackPoints(reading, await this.#head(n));
      return { judge, points: (await Array.fromAsync(points.next())).flat() };
    }));
  }

  async #live(config: Config, { seed, crash }: Life): Promise<void> {
    scheduler = seed;
    const n = this.#configs.push(config) - 1;
    this.#store = this.#store.restarted({ crash_after_appends: crash ?? undefined });
    try {
      await seed.waitFor(this.#execute(n));
    } catch (error) {
      ok(error instanceof Crashed, String(error));
    }
    this.#store = this.#store.restarted();
  }

  async #execute(n: number): Promise<void> {
    const graph = tracked.build(this.#configs[n]!);
    await this.#engine().execute(String(n), graph);
  }

  async #head(n: number): Promise<RunHead> {
    return (await this.#store.head(String(n)))!;
  }

  #engine(): Engine {
    return new Engine({ store: this.#store, artifacts: this.#artifacts });
  }
}

const WHOLE = LOOPS.flatMap((loop) =>
  Array.from({ length: ROUNDS[loop] }, (_, i) => `${loop}/${i + 1}`)
);

/** Every round is a point, in order, with what its stages emitted, and nothing is twice. */
function isWhole({ judge, points }: { judge: number; points: TrackPoint[] }): void {
  deepStrictEqual(points.map(({ number }) => number), points.map((_, i) => i + 1));
  const rounds = points.flatMap(({ round, ...point }) => round ? [{ ...point, ...round }] : []);
  deepStrictEqual(rounds.map(({ step }) => step), WHOLE.map((_, i) => i + 1));
  for (const loop of LOOPS) {
    const loopPoints = rounds.filter((point) => point.loop === loop);
    deepStrictEqual(
      loopPoints.map(({ round }) => `${loop}/${round}`),
      WHOLE.filter((at) => at.startsWith(`${loop}/`)),
    );
  }
  for (const { loop, round, metrics } of rounds) {
    const stages = ["one", "other", "train"].map((stage) => `${loop}/${round}/${stage}`);
    deepStrictEqual(Object.keys(metrics).toSorted(), stages);
  }
  const outside = points.filter(({ round }) => round === null).map(({ metrics }) => metrics);
  deepStrictEqual(Object.assign({}, ...outside), { before: judge, between: judge, after: judge });
  deepStrictEqual(outside.length, 3);
}

Deno.test("every step is there once in runs, resumes, forks and forks of forks", async () => {
  const dir = await scratch();
  const life = fc.record({
    seed: fc.scheduler(),
    crash: fc.option(fc.integer({ min: 1, max: 30 })),
  });
  const fork = fc.record({
    of: fc.nat(5),
    loop: fc.constantFrom(...LOOPS),
    round: fc.nat(3),
    judge: fc.nat(1),
    life,
  });
  const forks = fc.array(fork, { minLength: 1, maxLength: 4 });
  await fc.assert(
    fc.asyncProperty(fc.nat(2), life, forks, async (lag, first, later) => {
      const runs = new Runs(dir);
      await runs.root(lag, first);
      for (const one of later) await runs.fork(one);
      scheduler = first.seed;
      for (const run of await first.seed.waitFor(runs.points())) isWhole(run);
    }),
    { numRuns: 60 },
  );
});
