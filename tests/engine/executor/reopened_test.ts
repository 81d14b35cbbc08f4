/** Which recorded failures a resume tries again, and what it leaves as it is. */
import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { setImmediate } from "node:timers";
import { z } from "zod";
import {
  BadDataError,
  defineStage,
  type EngineEvent,
  graph,
  type GraphDefinition,
  type JournalRow,
  prefixOf,
  type StageOptions,
} from "../../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { artifacts, bench, NoConfig } from "../fixtures.ts";

type Definition = GraphDefinition<Record<string, never>, Record<string, never>, unknown>;

function stage<In extends z.ZodType>(
  name: string,
  input: In,
  run: StageOptions<In, z.ZodAny>["run"],
  failed?: (output: { score: number | null }) => boolean,
) {
  return defineStage({ name, version: 1, input, output: z.any(), ...(failed && { failed }), run });
}

const Scored = z.strictObject({ name: z.string(), scored: z.array(z.any()) });
const Judged = z.strictObject({ ...Scored.shape, measured: z.number(), before: z.number() });
const failedOf = (scored: { score: number | null }[]) =>
  scored.filter(({ score }) => score === null).length;

/** A user's code, which may be broken, and what is made of it. */
class World {
  /** Of which items the score fails, and of which rounds the save raises. */
  broken: (id: string) => boolean = () => false;
  /** How many failed scores a judge of this name takes. */
  takes: Record<string, number> = {};
  /** Who gives up while all others still have their judge before them; empty: nobody waits. */
  first = "";
  /** What is recorded before that. */
  after = "";
  readonly #failed = Promise.withResolvers<void>();
  readonly #finished = Promise.withResolvers<void>();

  onEvent = (event: EngineEvent) => {
    if (event.type === "stage_failed") this.#failed.resolve();
    if (event.type === "stage_finished" && event.key === this.after) this.#finished.resolve();
  };

  async #turn(name: string): Promise<void> {
    if (this.first === name) return this.after === "" ? undefined : await this.#finished.promise;
    if (this.first === "") return;
    await this.#failed.promise;
    await new Promise((resolve) => setImmediate(resolve)); // Then the engine starts nothing more.
  }

  readonly score = stage(
    "score",
    z.strictObject({ item: z.string() }),
    ({ item }) => ({ id: item, score: this.broken(item) ? null : item.length }),
    ({ score }) => score === null,
  );
  /** Reads scores beside the judge. */
  readonly measure = stage("measure", Scored, async ({ name, scored }, ctx) => {
    await ctx.step("turn", () => this.#turn(name));
    return scored.length - failedOf(scored);
  });
  readonly judge = stage("judge", Judged, ({ name, scored, measured, before }) => {
    const failed = failedOf(scored);
    if (failed > (this.takes[name] ?? 0)) {
      throw new BadDataError(`${name} has ${failed} failed scores`);
    }
    return before + measured;
  });
  readonly save = stage(
    "save",
    z.strictObject({ total: z.number(), round: z.number() }),
    ({ total, round }) => {
      if (this.broken(`save ${round}`)) throw new TypeError(`save ${round} is broken`);
      return total;
    },
  );
  /** As dynamic sampling does: asks for more as long as scores fail. */
  readonly fill = stage(
    "fill",
    z.strictObject({ items: z.array(z.string()) }),
    async ({ items }, ctx) => {
      let good = 0;
      for (const item of items) {
        if (item === "last") await this.#turn("fill");
        const { score } = await ctx.call(this.score, { item }, { id: item });
        if (score !== null && ++good === 2) break;
      }
      return good;
    },
  );
}

/**
 * An evaluation before, one beside what each of two overlapping rounds learns from, and one after.
 */
function evaluated({ score, measure, judge, save }: World): Definition {
  return graph("evaluated", NoConfig, (g) => {
    // deno-lint-ignore no-explicit-any -- One function for values of the run and of a round.
    const judged = (on: typeof g, name: string, before: any) => {
      const scored = on.map(score, on.constant([`${name}-a`, `${name}-bb`]), {}, {
        as: `${name}_score`,
      });
      const measured = on.stage(measure, { name, scored }, { as: `${name}_measure` });
      return on.stage(judge, { name, scored, measured, before }, { as: name });
    };
    const first = judged(g, "before", 0);
    const { total } = g.loop("round", { times: 2, carry: { total: g.constant(0) } }, (r) => {
      judged(r, "between", 0);
      const learned = judged(r, "learn", r.carried("total", { lag: 1 }));
      return { total: r.stage(save, { total: learned, round: r.index }) };
    });
    return { first, total, last: judged(g, "after", total) };
  });
}

async function execute(world: World, definition: Definition, store = new MemoryStore()) {
  const used = bench({ store, onEvent: world.onEvent });
  if (await store.head("run") === null) await used.engine.create(definition, {}, { id: "run" });
  return { store, outcome: await used.engine.execute("run", definition.build({})) };
}

/** Keys of which there is more than one result. */
function repeatedResults(store: MemoryStore): string[] {
  const results = store.rows("run").filter(({ kind, key }) =>
    kind === "result" && !key.endsWith("/turn#1")
  );
  const keys = results.map(({ key }) => key);
  return [...new Set(keys.filter((key, place) => keys.indexOf(key) !== place))].sort();
}

/** A run that has failed, of its `first` before the others could. */
async function failed(
  { first, broken, takes = {} }: Pick<World, "first" | "broken"> & { takes?: World["takes"] },
) {
  const world = Object.assign(new World(), { first, broken, takes });
  const { store, outcome } = await execute(world, evaluated(world));
  ok(outcome.status === "failed");
  return { store, error: outcome.error.message };
}

/** The run's next start, with the code mended. */
async function mended(store: MemoryStore, takes: World["takes"] = {}) {
  const world = Object.assign(new World(), { takes });
  return await execute(world, evaluated(world), store);
}

const WHOLE = { status: "done", output: { first: 2, total: 2, last: 4 } };

for (const first of ["before", "between", "learn", "after"]) {
  Deno.test(`what failed is tried again wherever it lies: '${first}' gives up first`, async () => {
    const { store, error } = await failed(
      first === "after"
        ? { first: "", broken: (id) => id.startsWith("after") }
        : { first, broken: () => true },
    );
    match(error, new RegExp(`${first} has 2 failed scores`));
    const scores = store.rows("run").filter(({ kind, key }) =>
      kind === "result" && key.includes("_score")
    );
    const recorded = scores.filter(({ value }) => value.includes('"score":null')).map(({ key }) =>
      key
    );
    strictEqual(recorded.length, first === "after" ? 2 : 12);
    const { outcome } = await mended(store.restarted());
    deepStrictEqual(outcome, WHOLE);
    deepStrictEqual(
      repeatedResults(store).filter((key) => key.includes("_score")),
      recorded.sort(),
    );
  });
}

Deno.test("a failure that was taken stands, and so does all that was made of it", async () => {
  const takes = { before: 1, between: 1, learn: 1 };
  for (const broken of ["after-bb", "save 1", "save 2"]) {
    const { store } = await failed({
      first: "",
      takes,
      broken: (id) => id.endsWith("-a") || id === broken,
    });
    const { outcome } = await mended(store.restarted(), takes);
    deepStrictEqual(outcome, { status: "done", output: { first: 1, total: 1, last: 3 } });
    deepStrictEqual(repeatedResults(store).filter((key) => !key.startsWith("after")), []);
  }
});

Deno.test("a resume that dies after any append is resumed to the same end", async () => {
  for (let appends = 1;; appends++) {
    const { store } = await failed({ first: "before", broken: () => true });
    const dying = await mended(store.restarted({ crash_after_appends: appends })).catch((error) => {
      ok(error instanceof Crashed, error);
      return null;
    });
    if (dying !== null) return deepStrictEqual(dying.outcome, WHOLE);
    deepStrictEqual((await mended(store.restarted())).outcome, WHOLE, `after ${appends} appends`);
  }
});

Deno.test("a stage that started with a new input answers no older result", async () => {
  const { store } = await failed({ first: "before", broken: () => true });
  const isBegun = ({ kind, key }: JournalRow) => kind === "intent" && key === "before_measure";
  const dying = store.restarted({ crash_after: (rows) => rows.some(isBegun) });
  const held = Object.assign(new World(), { first: "before" });
  await rejects(execute(held, evaluated(held), dying), Crashed);
  deepStrictEqual((await mended(store.restarted())).outcome, WHOLE);
});

Deno.test("a body's calls are tried again too; those it no longer makes are dropped", async () => {
  const filling = (world: World) =>
    graph("filling", NoConfig, (g) => {
      const scored = g.map(world.score, g.constant(["a"]));
      const measured = g.stage(world.measure, { name: "before", scored });
      return {
        before: g.stage(world.judge, { name: "before", scored, measured, before: 0 }),
        filled: g.stage(world.fill, { items: ["x", "y", "z", "last"] }),
      };
    }) as Definition;
  const broken = Object.assign(new World(), {
    first: "before",
    after: "fill/score#z",
    broken: (id: string) => id !== "z",
  });
  const { store, outcome } = await execute(broken, filling(broken));
  match(JSON.stringify(outcome), /before has 1 failed scores/);
  const filled = (rows = store.rows("run")) =>
    rows.filter(({ kind, key }) => kind === "result" && /^fill/.test(key));
  deepStrictEqual(filled().map(({ key }) => key), ["fill/score#x", "fill/score#y", "fill/score#z"]);
  const calm = new World();
  const resumed = await execute(calm, filling(calm), store.restarted());
  deepStrictEqual(resumed.outcome, { status: "done", output: { before: 1, filled: 2 } });
  deepStrictEqual(repeatedResults(store), ["fill/score#x", "fill/score#y", "measure", "score#a"]);
});

Deno.test("a fork takes over no failure that nobody has accepted", async () => {
  const world = Object.assign(new World(), { first: "before", broken: () => true });
  const { store } = await execute(world, evaluated(world));
  const run = (await store.head("run"))!;
  const graph = evaluated(world).build({});
  const { rows } = await prefixOf({ store, artifacts }, { run, graph, round: 0 });
  deepStrictEqual(rows.map(({ kind, key }) => [kind, key]), [["note/fork", "run"]]);
});
