import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { z } from "zod";
import {
  defineStage,
  Engine,
  explain,
  type Explanation,
  graph,
  InfrastructureError,
  keysRead,
  type RecordingContext,
  type StageOptions,
} from "../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../testing/mod.ts";
import { artifacts } from "./fixtures.ts";

const Config = z.strictObject({ lag: z.number().default(0), word: z.string().default("a") });

const Any = z.record(z.string(), z.unknown());

function stage(
  name: string,
  run: StageOptions<typeof Any, z.ZodAny>["run"],
  options: Partial<StageOptions<typeof Any, z.ZodAny>> = {},
) {
  return defineStage({ name, version: 1, input: Any, output: z.any(), ...options, run });
}

type Body = StageOptions<typeof Any, z.ZodAny>["run"];

/** A graph of two stages: `first`, and `second` with this body, which reads it. */
function pair(body: Body, options: Partial<StageOptions<typeof Any, z.ZodAny>> = {}) {
  const first = stage("first", () => "ready");
  const second = stage("second", body, options);
  return graph(
    "pair",
    Config,
    (g, { word }) => g.stage(second, { first: g.stage(first, {}), word }),
  );
}

type Options = Parameters<typeof pair>;

/** Executes on a store that may crash; `resumed`: another engine afterwards. */
async function run(
  store: MemoryStore,
  definition: ReturnType<typeof pair>,
  config: z.input<typeof Config> = {},
) {
  const engine = new Engine({ store, artifacts, backoff: { first_ms: 0, max_ms: 0 } });
  if (await store.head("run") === null) await engine.create(definition, config, { id: "run" });
  return await engine.execute("run", definition.build(config));
}

async function why(
  store: MemoryStore,
  definition: ReturnType<typeof pair>,
  key: string,
): Promise<Explanation> {
  const reads = keysRead(definition.build({}), key);
  return explain(await store.read("run"), { key, reads });
}

const reasons = ({ starts }: Explanation) =>
  starts.map(({ attempt, epoch, reason }) => [attempt, epoch, reason]);

Deno.test("why: an entry waited for what it reads; artifacts and children are named", async () => {
  const store = new MemoryStore();
  const ref = await artifacts.putJson({ made: true });
  const definition = pair(async (_, ctx) => {
    await ctx.step("count", () => 1);
    return { ref };
  });
  await run(store, definition);
  const second = await why(store, definition, "second");
  deepStrictEqual(
    [second.stage, second.runs_on, second.state, second.waited_for?.key, second.children],
    ["second@1", "engine", "done", "first", 1],
  );
  deepStrictEqual([reasons(second), second.result!.artifacts], [[[1, 1, "ready"]], [ref]]);
  const step = await why(store, definition, "second/count#1");
  deepStrictEqual([step.stage, step.state, step.starts], [null, "done", []]);
});

Deno.test("why: failures, a resume's new budget, and the error of each", async () => {
  const store = new MemoryStore();
  let failures = 4;
  const definition = pair(() => {
    if (failures-- > 0) throw new InfrastructureError(`on purpose, ${failures} left`);
    return "done";
  }, { attempts_max: 2 });
  strictEqual((await run(store, definition)).status, "failed");
  const failed = await why(store, definition, "second");
  deepStrictEqual([failed.state, failed.failure?.message], ["failed", "on purpose, 2 left"]);
  strictEqual((await run(store.restarted(), definition)).status, "failed");
  strictEqual((await run(store.restarted(), definition)).status, "done");
  const done = await why(store, definition, "second");
  deepStrictEqual(reasons(done), [[1, 1, "ready"], [2, 1, "failure"], [3, 2, "resume"], [
    4,
    2,
    "failure",
  ], [
    5,
    3,
    "resume",
  ]]);
  deepStrictEqual(done.starts.map(({ error }) => error?.message.slice(-6) ?? null), [
    null,
    "3 left",
    "2 left",
    "1 left",
    "0 left",
  ]);
  deepStrictEqual([done.state, done.failure], ["done", null]);
});

Deno.test("why: an engine that ended early, and what the next restored first", async () => {
  const first = new MemoryStore();
  const definition = pair(async (_, ctx: RecordingContext) => {
    await ctx.step("one", () => 1);
    if (ctx.epoch > 1) {
      await ctx.record("recovery", ctx.key, { cause: "engine_lost", action: "load_checkpoint" });
    }
    await ctx.step("two", () => 2);
    return "done";
  });
  await rejects(run(first.restarted({ crash_after_appends: 3 }), definition), Crashed);
  await run(first.restarted(), definition);
  const entry = await why(first, definition, "second");
  deepStrictEqual(reasons(entry), [[1, 1, "ready"], [2, 2, "other_engine"]]);
  deepStrictEqual(entry.starts[1]!.recoveries, [{
    cause: "engine_lost",
    action: "load_checkpoint",
  }]);
});

Deno.test("why: an entry that ran again names the fields of its input that changed", async () => {
  for (const long of ["", "x".repeat(5000)]) {
    const first = new MemoryStore();
    const options: Options[1] = { replay: "rerun" };
    const body: Body = async (_, ctx) => {
      await ctx.step("one", () => 1);
      return "done";
    };
    const before = pair(body, options);
    await rejects(
      run(first.restarted({ crash_after_appends: 3 }), before, { word: `a${long}` }),
      Crashed,
    );
    await run(first.restarted(), before, { word: `b${long}` });
    const { starts } = await why(first, before, "second");
    deepStrictEqual(starts.map(({ reason }) => reason), ["ready", "input_changed"]);
    deepStrictEqual(starts[1]!.changed.map(({ field }) => field), ["word"]);
    const { before: was, after } = starts[1]!.changed[0]!;
    if (long === "") deepStrictEqual([was, after], ['"a"', '"b"']);
    else deepStrictEqual([/^sha256 /.test(was!), was === after], [true, false]);
  }
});

Deno.test("explain() names a damaged row", async () => {
  const store = new MemoryStore();
  const definition = pair(() => "done");
  await run(store, definition);
  const { read } = store;
  for (const kind of ["intent", "result"] as const) {
    for (const value of ["{", "null", "7", "{}"]) {
      store.read = async (...args: Parameters<typeof read>) =>
        (await read.apply(store, args)).map((row) => row.kind === kind ? { ...row, value } : row);
      await rejects(why(store, definition, "second"), {
        code: "lost_record",
        message: new RegExp(
          `^Cannot read the '${kind}' row of 'second' because .* Fix: put the journal back`,
        ),
      });
    }
  }
});
