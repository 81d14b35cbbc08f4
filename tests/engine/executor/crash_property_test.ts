import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { z } from "zod";
import {
  defineStage,
  graph,
  type GraphDefinition,
  InfrastructureError,
  type RecordingContext,
} from "../../../engine/mod.ts";
import {
  Crashed,
  MemoryStore,
  type MemoryStoreOptions,
  SimulatedWorld,
} from "../../../testing/mod.ts";
import { onceDurable, watched } from "../../flows/crashes/deaths.ts";
import { bench, NoConfig } from "../fixtures.ts";

/**
 * A small graph: a loop whose rounds draw lists, map over them with steps and child stages, and
 * fold what came out.
 */
type Plan = {
  times: number;
  lag: number;
  lists: number[];
  steps: number;
  children: number;
  /** Failures of a body before it succeeds, by a number drawn from its key. */
  failures: number[];
  branch: boolean;
  /** The round that asks to be the last. */
  until: number;
  evaluate: boolean;
  /** Of the rows that the run writes undisturbed: once which one is durable, each engine dies. */
  crashes: number[];
  /** Of the turns of the event loop: which rows share an append. */
  seed: number;
};

const plans: fc.Arbitrary<Plan> = fc.record({
  times: fc.integer({ min: 1, max: 4 }),
  lag: fc.integer({ min: 0, max: 2 }),
  lists: fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 1, maxLength: 3 }),
  steps: fc.integer({ min: 0, max: 2 }),
  children: fc.integer({ min: 0, max: 2 }),
  failures: fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 1, maxLength: 5 }),
  branch: fc.boolean(),
  until: fc.integer({ min: 1, max: 5 }),
  evaluate: fc.boolean(),
  crashes: fc.array(fc.nat(10_000), { minLength: 1, maxLength: 3 }),
  seed: fc.nat(10_000),
});

/** The same plans in every run of this test: a machine's speed must not decide what is tried. */
const SEED = 20_261_123;

const ATTEMPTS_MAX = 3;
const AT_ONCE = { first_ms: 0, max_ms: 0 };

/** Counts starts of bodies, and sees at once if a completed one starts again. */
class Watch {
  readonly starts = new Map<string, number>();
  readonly violations: string[] = [];
  store: MemoryStore | undefined;

  start(key: string): number {
    const count = (this.starts.get(key) ?? 0) + 1;
    this.starts.set(key, count);
    if (this.store?.rows("run").some((row) => row.kind === "result" && row.key === key)) {
      this.violations.push(key);
    }
    return count;
  }
}

type Definition = GraphDefinition<Record<string, never>, Record<string, never>, unknown>;

/** What bodies do; each fails as often as the plan says before it succeeds. */
class Bodies {
  constructor(readonly plan: Plan, readonly watch: Watch) {}

  failSometimes(ctx: RecordingContext): void {
    const { failures } = this.plan;
    const start = this.watch.start(ctx.key);
    if (start <= failures[keyNumber(ctx.key) % failures.length]!) {
      throw new InfrastructureError(`on purpose ${start}`);
    }
  }

  /** Steps, then child stages, side by side. */
  async work(n: number, ctx: RecordingContext): Promise<number> {
    const { steps, children } = this.plan;
    this.failSometimes(ctx);
    let sum = n;
    for (let step = 0; step < steps; step++) {
      sum += await ctx.step("step", ({ key }) => {
        this.watch.start(key);
        return n + step;
      });
    }
    const calls = Array.from(
      { length: children },
      (_, id) => ctx.call(this.#child, { n: id }, { id }),
    );
    ctx.tally({ worked: 1 });
    ctx.note("worked", ctx.key, { n });
    return (await Promise.all(calls)).reduce((a, b) => a + b, sum);
  }

  readonly #child = defineStage({
    name: "child",
    version: 1,
    runs_on: "sampler",
    attempts_max: ATTEMPTS_MAX,
    input: z.strictObject({ n: z.number() }),
    output: z.number(),
    run: ({ n }, ctx: RecordingContext) => {
      this.failSometimes(ctx);
      ctx.tally({ children: 1 });
      return n * 10;
    },
  });
}

function stagesOf(plan: Plan, bodies: Bodies) {
  const draw = defineStage({
    name: "draw",
    version: 1,
    output: z.array(z.array(z.number())),
    attempts_max: ATTEMPTS_MAX,
    input: z.strictObject({ round: z.number() }),
    run: ({ round }, ctx: RecordingContext) => {
      bodies.failSometimes(ctx);
      return plan.lists.map((length, list) =>
        Array.from({ length }, (_, place) => round * 100 + list * 10 + place)
      );
    },
  });
  const each = defineStage({
    name: "each",
    version: 1,
    output: z.number(),
    attempts_max: ATTEMPTS_MAX,
    input: z.strictObject({ item: z.number(), policy: z.number() }),
    run: async ({ item, policy }, ctx: RecordingContext) => policy + await bodies.work(item, ctx),
  });
  const echo = defineStage({
    name: "echo",
    version: 1,
    output: z.array(z.number()),
    attempts_max: ATTEMPTS_MAX,
    input: z.strictObject({ item: z.array(z.number()) }),
    run: ({ item }, ctx: RecordingContext) => {
      bodies.failSometimes(ctx);
      return item;
    },
  });
  const fold = defineStage({
    name: "fold",
    version: 1,
    output: z.number(),
    runs_on: "trainer",
    attempts_max: ATTEMPTS_MAX,
    input: z.strictObject({ values: z.array(z.number()), policy: z.number() }),
    run: ({ values, policy }, ctx: RecordingContext) => {
      bodies.failSometimes(ctx);
      return values.reduce((sum, value) => (sum * 31 + value) % 10007, policy);
    },
  });
  const isLast = defineStage({
    name: "is_last",
    version: 1,
    output: z.boolean(),
    input: z.number(),
    run: (round) => round >= plan.until,
  });
  return { draw, each, echo, fold, isLast };
}

function planned(plan: Plan, watch: Watch): Definition {
  const { draw, each, echo, fold, isLast } = stagesOf(plan, new Bodies(plan, watch));
  return graph("planned", NoConfig, (g) => {
    const options = { times: plan.times, carry: { policy: g.constant(1) }, until: "last" as const };
    const rounds = g.loop("round", options, (r) => {
      const lists = r.map(echo, r.stage(draw, { round: r.index }), {}, {
        id: (list) => list[0] ?? "empty",
      });
      const values = r.map(each, r.flat(lists), { policy: r.carried("policy", { lag: plan.lag }) });
      const folded = r.stage(fold, { values, policy: r.carried("policy") });
      const flag = r.constant(plan.branch);
      const policy = r.when(
        flag,
        (b) => b.stage(fold, { values: [7], policy: folded }),
        () => folded,
      );
      return { policy, last: r.stage(isLast, r.index) };
    });
    return plan.evaluate ? g.stage(fold, { values: [1], policy: rounds.policy }) : rounds.policy;
  });
}

/** Lists of one length share an id only if they are empty: keep at most one of those. */
function usable(plan: Plan): Plan {
  const lists = plan.lists.filter((length, place) => length > 0 || plan.lists.indexOf(0) === place);
  return { ...plan, lists };
}

function keyNumber(key: string): number {
  return [...key].reduce((sum, letter) => (sum * 33 + letter.charCodeAt(0)) % 65_521, 5);
}

type Run = { ended: unknown; rounds: unknown; deaths: number; watch: Watch };

/**
 * Runs to the end, through one engine for each death and a last one. Time and turns are simulated:
 * one plan is one history, row by row and append by append.
 */
async function runPlan(plan: Plan, deaths: readonly MemoryStoreOptions[]): Promise<Run> {
  const watch = new Watch();
  const definition = planned(plan, watch);
  const built = definition.build({});
  const world = new SimulatedWorld(plan.seed);
  const { clock } = world;
  let store = new MemoryStore({ clock });
  await bench({ store, clock }).engine.create(definition, {}, { id: "run" });
  for (const [died, death] of deaths.entries()) {
    store = store.restarted(death);
    watch.store = store;
    const { engine } = bench({ store, clock, backoff: AT_ONCE, slots: { sampler: 2 } });
    try {
      const ended = await within(world, engine.execute("run", built));
      const rounds = store.rows("run").filter((row) => row.kind === "round").map((row) => {
        const { open_after_seq: _, ...rest } = JSON.parse(row.value);
        return { key: row.key, ...rest };
      });
      return { ended, rounds, deaths: died, watch };
    } catch (error) {
      if (!(error instanceof Crashed)) throw error;
    }
  }
  throw new Error("the last engine does not crash");
}

/** What the promise comes to as the world's time passes. */
async function within<T>(world: SimulatedWorld, promise: Promise<T>): Promise<T> {
  let over = false;
  const settled = promise.finally(() => over = true);
  settled.catch(() => {});
  await world.run({ ended: () => over });
  if (!over) throw new Error("nothing is due any more, and the run has not ended");
  return await settled;
}

Deno.test("a run killed after any row ends as it does undisturbed, redoing no body", async () => {
  let deaths = 0;
  await fc.assert(
    fc.asyncProperty(plans.map(usable), async (plan) => {
      const moments = new Set<string>();
      const calm = await runPlan(plan, [watched(moments)]);
      const names = [...moments].toSorted();
      const crashes = plan.crashes.map((drawn) => onceDurable(names[drawn % names.length]!));
      const killed = await runPlan(plan, [...crashes, {}]);
      strictEqual((calm.ended as { status: string }).status, "done");
      deepStrictEqual(killed.ended, calm.ended);
      deepStrictEqual(killed.rounds, calm.rounds);
      deepStrictEqual(killed.watch.violations, []);
      for (const [key, starts] of killed.watch.starts) {
        ok(starts <= ATTEMPTS_MAX + killed.deaths, `${key} started ${starts} times`);
      }
      deaths += killed.deaths;
    }),
    { numRuns: 200, seed: SEED },
  );
  ok(deaths >= 200, `only ${deaths} engines died`);
});

Deno.test("one plan is one history, whatever the machine does meanwhile", async () => {
  await fc.assert(
    fc.asyncProperty(plans.map(usable), async (plan) => {
      const rowsOf = async () => {
        const crash_after_appends = 1 + plan.crashes[0]! % 12;
        const { watch } = await runPlan(plan, [{ crash_after_appends }, {}]);
        return watch.store!.rows("run");
      };
      deepStrictEqual(await rowsOf(), await rowsOf());
    }),
    { numRuns: 10, seed: SEED },
  );
});
