import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { defineStage, type EngineEvent, graph, InvalidInputError } from "../../../engine/mod.ts";
import { setting } from "../../../data/mod.ts";
import { Home, resumeRun, runGraph, runView } from "../../../runs/mod.ts";

let broken = false;

const half = defineStage({
  name: "half",
  version: 1,
  input: z.strictObject({ n: z.number() }),
  output: z.number(),
  run({ n }) {
    if (broken) throw new RangeError("out of order");
    return n / 2;
  },
});

/** Exported, as `resume` imports it by the entry that the run recorded. */
export const quarters = graph(
  "quarters",
  z.strictObject({ n: z.number().default(8) }),
  (g, config) => {
    const first = g.stage(half, { n: config.n }, { as: "first" });
    return g.loop(
      "again",
      { times: 1, carry: { n: first } },
      (r) => ({ n: r.stage(half, { n: r.carried("n") }) }),
    ).n;
  },
);
const entry = `${import.meta.url}#quarters`;

const limits: number[] = [];
const Limits = z.strictObject({ most: z.number().default(1), far: z.string().default("here") });
const limited = defineStage({
  name: "limited",
  version: 1,
  input: z.strictObject({ most: z.number(), after: z.number() }),
  output: z.number(),
  run({ most }) {
    limits.push(most);
    if (broken) throw new RangeError("out of order");
    return limits.length;
  },
});

/** Exported, as `resume` imports it. Two stages read a setting that may change. */
export const bounded = graph(
  "bounded",
  z.strictObject({
    n: z.number().default(0),
    limits: Limits.register(setting, { resume: "stages" }).prefault({}),
  }),
  (g, { limits: { most } }) => {
    const first = g.stage(limited, { most, after: 0 }, { as: "first" });
    return g.loop("again", { times: 1, carry: { first } }, (r) => {
      return {
        first: r.carried("first"),
        second: r.stage(limited, { most, after: r.carried("first") }),
      };
    });
  },
);

async function withDir(body: (dir: string) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-run-graph-" });
  try {
    await body(dir);
  } finally {
    broken = false;
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("runGraph() runs a graph, and again answers how it ended", async () => {
  await withDir(async (home) => {
    const options = { config: {}, home, entry, id: "q" };
    deepStrictEqual(await runGraph(quarters, options), { status: "done", output: 2, run: "q" });
    broken = true;
    deepStrictEqual(await runGraph(quarters, options), { status: "done", output: 2, run: "q" });
  });
});

Deno.test("runGraph() refuses a run of that id that began with another configuration", async () => {
  await withDir(async (home) => {
    await runGraph(quarters, { config: {}, home, entry, id: "q" });
    await rejects(
      runGraph(quarters, { config: { n: 9 }, home, entry, id: "q" }),
      (error: InvalidInputError) => {
        strictEqual(error.code, "invalid_input");
        strictEqual(error.message.includes(`it started with {"n":8}, this call has {"n":9}`), true);
        return true;
      },
    );
  });
});

Deno.test("runGraph() resumes with a changed setting, which stays", async () => {
  await withDir(async (dir) => {
    const home = Home.open(dir);
    const options = { home, entry: `${import.meta.url}#bounded`, id: "b" };
    const onEvent = (event: EngineEvent) => {
      if (event.type === "stage_finished") broken = event.key === "first";
    };
    try {
      strictEqual((await runGraph(bounded, { ...options, config: {}, onEvent })).status, "failed");
      strictEqual(
        (await runGraph(bounded, { ...options, config: { limits: { most: 2 } } })).status,
        "failed",
      );
      strictEqual(
        (await runGraph(bounded, { ...options, config: { limits: { most: 3, far: "there" } } }))
          .status,
        "failed",
      );
      strictEqual((await resumeRun(home, "b")).status, "failed");
      strictEqual((await runGraph(bounded, { ...options, config: {} })).status, "failed");
      await rejects(runGraph(bounded, { ...options, config: { n: 1, limits: { most: 4 } } }), {
        code: "invalid_input",
      });
      broken = false;
      strictEqual((await resumeRun(home, "b")).status, "done");
      deepStrictEqual(limits, [1, 1, 2, 3, 3, 3, 3], "what was recorded with 1 stands");
      const head = (await home.store.head("b"))!;
      const { settings, recoveries } = await runView(home.store, head, {
        workers: [],
        metrics: {},
      });
      deepStrictEqual(settings.map(({ path, from, to }) => [path, from, to]), [
        ["limits.most", 1, 2],
        ["limits.far", "here", "there"],
        ["limits.most", 2, 3],
      ]);
      deepStrictEqual(recoveries, [], "a resume of a failed run recovers no worker");
    } finally {
      await home.close();
    }
  });
});

Deno.test("resumeRun() imports the recorded entry and repeats only what failed", async () => {
  await withDir(async (home) => {
    const started: string[] = [];
    const onEvent = (event: EngineEvent) => {
      if (event.type === "stage_started") started.push(event.key);
      if (event.type === "stage_finished") broken = event.key === "first";
    };
    const failed = await runGraph(quarters, { config: {}, home, entry, id: "q", onEvent });
    deepStrictEqual([failed.status, started], ["failed", ["first", "again/1/half"]]);
    broken = false;
    deepStrictEqual(await resumeRun(home, "q", { onEvent }), { status: "done", output: 2 });
    deepStrictEqual(started, ["first", "again/1/half", "again/1/half"]);
  });
});

Deno.test("resumeRun() says what is missing: the run, or the graph in its module", async () => {
  await withDir(async (dir) => {
    await rejects(resumeRun(dir, "q"), { code: "invalid_input", message: /Cannot find run 'q'/ });
    const home = Home.open(dir);
    try {
      await runGraph(quarters, { config: {}, home, entry: `${import.meta.url}#gone`, id: "q" });
      await rejects(resumeRun(home, "q"), {
        code: "invalid_input",
        message: /exports no graph 'gone'/,
      });
    } finally {
      await home.close();
    }
  });
});

const echoed: unknown[] = [];
const echo = defineStage({
  name: "echo",
  version: 1,
  input: z.strictObject({ config: z.unknown(), round: z.number() }),
  output: z.number(),
  run({ config, round }) {
    echoed.push((config as { start_from?: string }).start_from);
    if (broken && round > 0) throw new RangeError("out of order");
    return round;
  },
});

/** Exported, as `resume` imports it. A stage reads the whole configuration. */
export const counted = graph(
  "counted",
  z.strictObject({ rounds: z.number(), start_from: z.string().optional() }),
  (g, config) => {
    const { rounds: times } = config;
    const n = g.stage(echo, { config, round: 0 }, { as: "before" });
    return g.loop("round", { times, carry: { n } }, (r) => ({
      n: r.stage(echo, { config, round: r.index }),
    }));
  },
);

Deno.test("runGraph() builds a run with the start that it records, and resumes it", async () => {
  await withDir(async (home) => {
    const entry = `${import.meta.url}#counted`;
    await runGraph(counted, { config: { rounds: 2 }, home, entry, id: "a" });
    const options = { config: { rounds: 3, start_from: "a" }, home, entry, id: "b" };
    broken = true;
    echoed.length = 0;
    strictEqual((await runGraph(counted, options)).status, "failed");
    broken = false;
    deepStrictEqual(await runGraph(counted, options), {
      status: "done",
      output: { n: 3 },
      run: "b",
    });
    deepStrictEqual(new Set(echoed), new Set(["a@2"]));
  });
});
