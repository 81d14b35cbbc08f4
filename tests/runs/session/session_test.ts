import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { defineStage, DrainedError, type EngineEvent, graph } from "../../../engine/mod.ts";
import { Paths, Rows } from "../../../flows/mod.ts";
import { createRun, executeRun, Home, recordedDefinition, thisRelease } from "../../../runs/mod.ts";
import { rowsOf, scratch } from "../../flows/fixtures.ts";
import { createFakeRun, freshFakeHome } from "../fake_home.ts";

const where = defineStage({
  name: "where",
  version: 1,
  input: z.strictObject({}),
  output: z.strictObject({ dir: z.string(), splits: z.array(z.string()) }),
  run: (_, ctx) => ({
    dir: ctx.resource(Paths).run,
    splits: Object.keys(ctx.resource(Rows)),
  }),
});

const place = graph("place", z.strictObject({ seed: z.int().default(1) }), (g) => {
  return g.stage(where, {});
});
const ENTRY = `${import.meta.url}#place`;

async function withHome(body: (home: Home) => Promise<void>): Promise<void> {
  const home = Home.open(await scratch());
  try {
    await body(home);
  } finally {
    await home.close();
  }
}

Deno.test("createRun() records a run with its directory, and starts nothing", async () => {
  await withHome(async (home) => {
    const head = await createRun(home, place, { config: { seed: 4 }, entry: ENTRY, id: "a" });
    deepStrictEqual([head.id, head.epoch, head.status], ["a", 0, "created"]);
    deepStrictEqual(JSON.parse(head.config), { seed: 4 });
    deepStrictEqual(JSON.parse(head.packages), {
      deno: Deno.version.deno,
      ...thisRelease(),
    });
    strictEqual((await Deno.stat(home.runDir("a"))).isDirectory, true);
    deepStrictEqual(await home.store.read("a", { kinds: ["intent"] }), []);
  });
});

Deno.test("executeRun() tells a graph without workers where its run is", async () => {
  await withHome(async (home) => {
    const head = await createRun(home, place, { config: {}, entry: ENTRY, id: "a" });
    const types: EngineEvent["type"][] = [];
    const outcome = await executeRun(home, { head, graph: place.build({ seed: 1 }) }, {
      onEvent: ({ type }) => void types.push(type),
    });
    deepStrictEqual(outcome, { status: "done", output: { dir: home.runDir("a"), splits: [] } });
    deepStrictEqual(types.filter((type) => type.startsWith("run_")), [
      "run_started",
      "run_ended",
    ]);
    strictEqual((await home.store.head("a"))!.status, "done");
  });
});

Deno.test("executeRun() interrupts a run that should stop before it starts", async () => {
  await withHome(async (home) => {
    const head = await createRun(home, place, { config: {}, entry: ENTRY, id: "a" });
    const built = { head, graph: place.build({ seed: 1 }) };
    const outcome = await executeRun(home, built, { drain: AbortSignal.abort() });
    strictEqual(outcome.status, "interrupted");
    const again = (await home.store.head("a"))!;
    strictEqual((await executeRun(home, { ...built, head: again })).status, "done");
  });
});

Deno.test("executeRun() interrupts a run whose stop ends a search before it starts", async () => {
  await withHome(async (home) => {
    const head = await createRun(home, place, { config: {}, entry: ENTRY, id: "a" });
    const built = { head, graph: place.build({ seed: 1 }) };
    const stop = new AbortController();
    // As every process that is asked before the start ends: with the signal's reason.
    const searched = {
      drain: stop.signal,
      get rows(): never {
        stop.abort();
        throw stop.signal.reason;
      },
    };
    strictEqual((await executeRun(home, built, searched)).status, "interrupted");
    const broken = new Error("broken");
    const failing = {
      drain: stop.signal,
      get rows(): never {
        throw broken;
      },
    };
    await rejects(executeRun(home, built, failing), broken);
  });
});

Deno.test("executeRun() interrupts a run whose environment was not finished, and it can be resumed", async () => {
  const stop = new AbortController();
  const needs = defineStage({
    name: "needs_an_environment",
    version: 1,
    input: z.strictObject({}),
    output: z.number(),
    attempts_max: 1,
    run: () => {
      if (stop.signal.aborted) return 1;
      stop.abort();
      throw new DrainedError("Cannot finish the Python environment because the run stops", {}, {
        retryable: true,
        counted: false,
      });
    },
  });
  const needy = graph("needy", z.strictObject({}), (g) => g.stage(needs, {}));
  await withHome(async (home) => {
    const head = await createRun(home, needy, { config: {}, entry: ENTRY, id: "a" });
    const built = { head, graph: needy.build({}) };
    const first = await executeRun(home, built, { drain: stop.signal });
    strictEqual(first.status, "interrupted");
    const again = (await home.store.head("a"))!;
    deepStrictEqual(await executeRun(home, { ...built, head: again }), {
      status: "done",
      output: 1,
    });
  });
});

Deno.test("executeRun() ends the work on a worker's environment when it should stop", async () => {
  const home = await freshFakeHome();
  const python = `${home.dir}/python`;
  // Unless it is ended, this interpreter is found to be broken.
  await Deno.writeTextFile(python, '#!/bin/sh\nmkdir "$0.asked"\nsleep 5\nexit 1\n', {
    mode: 0o700,
  });
  const head = await createFakeRun(home, "a", { rounds: 1, trainer: { python } });
  const { definition, config } = await recordedDefinition(home.store, head);
  const stop = new AbortController();
  const seen = Deno.watchFs(home.dir, { recursive: false });
  const stopped = (async () => {
    for await (const { paths } of seen) {
      if (!paths.includes(`${python}.asked`)) continue;
      stop.abort();
      return;
    }
  })();
  const logs: string[] = [];
  const outcome = await executeRun(home, { head, graph: definition.build(config) }, {
    drain: stop.signal,
    rows: { train: rowsOf(16) },
    onEvent: (event) => void logs.push(JSON.stringify(event)),
  });
  await stopped;
  strictEqual(outcome.status, "interrupted", JSON.stringify(outcome));
  deepStrictEqual(logs.filter((text) => text.includes("does not run")), []);
  await home.close();
});

Deno.test("executeRun() refuses a changed graph unless it is accepted", async () => {
  await withHome(async (home) => {
    const head = await createRun(home, place, { config: {}, entry: ENTRY, id: "a" });
    const other = graph("place", z.strictObject({ seed: z.int() }), (g) => {
      return g.stage(where, {}, { as: "elsewhere" });
    }).build({ seed: 1 });
    await rejects(executeRun(home, { head, graph: other }), { code: "replay_drift" });
    const outcome = await executeRun(home, { head, graph: other }, { accept: true });
    strictEqual(outcome.status, "done");
  });
});
