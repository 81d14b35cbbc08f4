/**
 * The graphs that are simulated: every construct of the engine, put together by a plan that is
 * drawn from a seed.
 */
import { z } from "zod";
import {
  defineResource,
  defineStage,
  graph,
  type GraphDefinition,
  InfrastructureError,
  type RecordingContext,
  type Stage,
} from "../../engine/mod.ts";
import { randomStream } from "../../engine/executor/random.ts";

export type Plan = {
  times: number;
  lag: number;
  /** Lengths of the lists that a round draws; at most one is 0. */
  lists: number[];
  steps: number;
  children: number;
  /** Failures of a body before it succeeds, by a number drawn from its key. */
  failures: number[];
  branch: boolean;
  /** The round that asks to be the last. */
  until: number;
  eager: boolean;
  /** Checkpoints that a task commits inside itself. */
  checkpoints: number;
  /** The first attempt of a round's slow stage hangs until its limit. */
  hangs: boolean;
  sleep_ms: number;
  signal: boolean;
};

export function planOf(seed: number): Plan {
  const random = randomStream("plan", seed);
  const between = (low: number, high: number) => low + Math.floor(random() * (high - low + 1));
  const lists = Array.from({ length: between(1, 3) }, () => between(0, 3));
  return {
    times: between(1, 4),
    lag: between(0, 2),
    lists: lists.filter((length, place) => length > 0 || lists.indexOf(0) === place),
    steps: between(0, 2),
    children: between(0, 2),
    failures: Array.from({ length: between(1, 5) }, () => Math.max(0, between(-2, 2))),
    branch: random() < 0.5,
    until: between(1, 5),
    eager: random() < 0.5,
    checkpoints: between(0, 3),
    hangs: random() < 0.3,
    sleep_ms: random() < 0.3 ? between(1, 20_000) : 0,
    signal: random() < 0.3,
  };
}

/** Does an operation of a worker group: doubles, later. */
export type Operate = (
  group: string,
  args: { n: number },
  ctx: RecordingContext,
) => Promise<number>;
/** Resource of the stages that run on workers. */
export const Operator = defineResource<Operate>("operator");
/** The signal that the graph waits for, if the plan says so. */
export const SIGNAL = "go";
/** Attempts that bodies may fail on purpose, and a machine as well. */
export const ATTEMPTS_MAX = 4;
const SLOW_LIMIT_MS = 5000;

/** Told of every start of a body or of a step's function; answers how often it has started. */
type Started = (ctx: { key: string; epoch: number }) => number;

/** Compiled once: a schema of its own for every history would cost more than the history. */
const Config = z.strictObject({});
const N = z.strictObject({ n: z.number() });
const Item = z.strictObject({ item: z.number(), policy: z.number() });
const List = z.strictObject({ item: z.array(z.number()) });
const Round = z.strictObject({ round: z.number() });
const Fold = z.strictObject({ values: z.array(z.number()), policy: z.number() });
const Lists = z.array(z.array(z.number()));
const Numbers = z.array(z.number());
const Value = z.number();
const Flag = z.boolean();

type Workload = GraphDefinition<Record<string, never>, Record<string, never>, unknown>;

export function workload(plan: Plan, started: Started): Workload {
  const stages = stagesOf(plan, started);
  return graph("simulated", Config, (g) => {
    const start = plan.signal ? g.stage(stages.waits, {}) : g.constant(1);
    const options = { times: plan.times, carry: { policy: start }, until: "last" as const };
    const rounds = g.loop("round", options, (r) => {
      const lists = r.map(stages.echo, r.stage(stages.draw, { round: r.index }), {}, {
        id: (list) => list[0] ?? "empty",
      });
      const values = r.map(stages.each, r.flat(lists), {
        policy: r.carried("policy", { lag: plan.lag }),
      });
      const folded = r.stage(stages.fold, { values, policy: r.carried("policy") });
      const slow = r.stage(stages.slow, { n: folded });
      const policy = r.when(
        r.constant(plan.branch),
        (b) => b.stage(stages.fold, { values: [7], policy: slow }),
        () => slow,
      );
      return { policy, last: r.stage(stages.isLast, { round: r.index }) };
    });
    return g.stage(stages.task, { n: rounds.policy });
  });
}

function stagesOf(plan: Plan, started: Started) {
  const failSometimes = (ctx: RecordingContext) => {
    const starts = started(ctx);
    const failures = plan.failures[keyNumber(ctx.key) % plan.failures.length]!;
    if (starts <= failures) throw new InfrastructureError(`on purpose ${starts}`);
  };
  const base = { version: 1, output: Value, attempts_max: ATTEMPTS_MAX, eager: plan.eager };
  const child = defineStage({
    ...base,
    name: "child",
    input: N,
    runs_on: "sampler",
    run: async (args, ctx: RecordingContext) => {
      failSometimes(ctx);
      ctx.tally({ children: 1 });
      return await ctx.resource(Operator)("sampler", args, ctx);
    },
  });
  const each = defineStage({
    ...base,
    name: "each",
    input: Item,
    run: async ({ item, policy }, ctx: RecordingContext) => {
      failSometimes(ctx);
      return policy + await work({ plan, child, started }, { n: item, ctx });
    },
  });
  const draw = defineStage({
    ...base,
    name: "draw",
    output: Lists,
    input: Round,
    run: ({ round }, ctx: RecordingContext) => {
      failSometimes(ctx);
      return plan.lists.map((length, list) =>
        Array.from({ length }, (_, place) => round * 100 + list * 10 + place)
      );
    },
  });
  const echo = defineStage({
    ...base,
    name: "echo",
    output: Numbers,
    input: List,
    run: ({ item }, ctx: RecordingContext) => (failSometimes(ctx), item),
  });
  const fold = defineStage({
    ...base,
    name: "fold",
    input: Fold,
    runs_on: "trainer",
    run: async ({ values, policy }, ctx: RecordingContext) => {
      failSometimes(ctx);
      const folded = values.reduce((sum, value) => (sum * 31 + value) % 10007, policy);
      return (await ctx.resource(Operator)("trainer", { n: folded }, ctx)) % 10007;
    },
  });
  const isLast = defineStage({
    ...base,
    name: "is_last",
    output: Flag,
    input: Round,
    run: ({ round }, ctx: RecordingContext) => (started(ctx), round >= plan.until),
  });
  return { draw, each, echo, fold, isLast, ...slowStages(plan, started) };
}

/** A body of steps and calls, the calls at once. */
async function work(
  { plan, child, started }: { plan: Plan; child: Stage<{ n: number }, number>; started: Started },
  { n, ctx }: { n: number; ctx: RecordingContext },
): Promise<number> {
  let sum = n + Math.floor(ctx.random("salt")() * 10);
  for (let step = 0; step < plan.steps; step++) {
    sum += await ctx.step("step", ({ key }) => {
      started({ key, epoch: ctx.epoch });
      return n + step;
    });
  }
  const calls = Array.from(
    { length: plan.children },
    (_, id) => ctx.call(child, { n: id }, { id }),
  );
  ctx.tally({ worked: 1 });
  ctx.note("worked", ctx.key, { n });
  return (await Promise.all(calls)).reduce((a, b) => a + b, sum);
}

/** What waits: a hanging body, a sleep, a person, a long task that commits its progress. */
function slowStages(plan: Plan, started: Started) {
  const base = { version: 1, output: Value };
  const slow = defineStage({
    ...base,
    name: "slow",
    input: N,
    timeout_ms: SLOW_LIMIT_MS + plan.sleep_ms,
    attempts_max: { timeout: 20 }, // Time that a frozen engine missed counts too.
    run: async ({ n }, ctx: RecordingContext) => {
      started(ctx);
      if (plan.hangs && ctx.attempt === 1) await new Promise(() => {});
      const [first, second] = [
        await ctx.now({ id: "a" }),
        plan.sleep_ms && await ctx.sleep(plan.sleep_ms),
      ];
      return first > 0 && second !== null ? n + 1 : n;
    },
  });
  const waits = defineStage({
    ...base,
    name: "waits",
    input: Config,
    run: async (_, ctx: RecordingContext) => {
      started(ctx);
      return await ctx.signalled(SIGNAL) as number;
    },
  });
  const task = defineStage({
    ...base,
    name: "task",
    input: N,
    runs_on: "trainer",
    phase: "training",
    run: async ({ n }, ctx: RecordingContext) => {
      started(ctx);
      const kept = await ctx.checkpoints() as { place: number; sum: number }[];
      let sum = kept.at(-1)?.sum ?? n;
      for (let place = kept.length; place < plan.checkpoints; place++) {
        sum += await ctx.resource(Operator)("trainer", { n: place }, ctx);
        await ctx.checkpoint({ place, sum });
      }
      return sum;
    },
  });
  return { slow, waits, task };
}

function keyNumber(key: string): number {
  return [...key].reduce((sum, letter) => (sum * 33 + letter.charCodeAt(0)) % 65_521, 5);
}
