import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { z } from "zod";
import { defineStage, graph } from "../../../engine/mod.ts";
import {
  cancelAndEnd,
  createRun,
  executeRun,
  type Home,
  removeLeftovers,
} from "../../../runs/mod.ts";
import { strayCheckpoints } from "../../../runs/garbage/leftovers.ts";
import type { MemoryStore } from "../../../testing/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

const WEIGHTS = "0123456789abcdef";
const STRAY = "checkpoints/RUN/000003-0123456789ab-now-01234567";
/** What killed engines and workers leave, in each place that they write to. */
const REMAINS = [
  "runs/RUN/hub.json",
  "runs/RUN/hub.json.0123456789abcdef",
  `runs/RUN/publications/.${WEIGHTS}.77.old/model.safetensors`,
  `runs/RUN/publications/.${WEIGHTS}.tmp/config.json`,
  `runs/RUN/references/.${WEIGHTS}.77.old/model.safetensors`,
  "runs/RUN/.model.77.tmp/config.json",
  "runs/RUN/.final.77.old/config.json",
  "runs/RUN/.final.tmp/config.json",
  `${STRAY}/hf/config.json`,
  "checkpoints/RUN/.universal.000003-0123456789ab-1-1/state",
];
const KEPT = [
  "runs/RUN/final/config.json",
  "runs/RUN/.git/config",
  "runs/RUN/notes.old",
  `runs/RUN/publications/${WEIGHTS}/config.json`,
  "checkpoints/RUN/set_aside/000003-0123456789ab-1-1/state",
  "checkpoints/RUN/mine/state",
];

async function put(home: Home, run: string, paths: readonly string[]): Promise<void> {
  for (const path of paths.map((path) => at(home, run, path))) {
    await Deno.mkdir(path.slice(0, path.lastIndexOf("/")), { recursive: true });
    await Deno.writeTextFile(path, "x");
  }
}

const at = (home: Home, run: string, path: string) => `${home.dir}/${path.replace("RUN", run)}`;

async function there(home: Home, run: string, paths: readonly string[]): Promise<string[]> {
  const found = await Promise.all(
    paths.map((path) => Deno.stat(at(home, run, path)).then(() => [path], () => [])),
  );
  return found.flat();
}

/** A graph without workers. */
const plain = graph(
  "plain",
  z.strictObject({ fails: z.boolean().default(false) }),
  (g, { fails }) => {
    const stage = defineStage({
      name: "one",
      version: 1,
      input: z.strictObject({ fails: z.boolean() }),
      output: z.number(),
      run(input) {
        if (input.fails) throw new Error("on purpose");
        return 1;
      },
    });
    return g.stage(stage, { fails });
  },
);

async function run(
  home: Home,
  id: string,
  config: { fails?: boolean },
  before: (home: Home) => Promise<void>,
) {
  const head = await createRun(home, plain, { config, id, entry: "" });
  await before(home);
  return await executeRun(home, { head, graph: plain.build(config) });
}

Deno.test("only what killed processes left is gone when a run has ended", async () => {
  const home = await freshFakeHome();
  try {
    const leave = (id: string) => () => put(home, id, [...REMAINS, ...KEPT]);
    strictEqual((await run(home, "done", {}, leave("done"))).status, "done");
    deepStrictEqual(await there(home, "done", REMAINS), []);
    deepStrictEqual(await there(home, "done", KEPT), KEPT);

    strictEqual((await run(home, "failed", { fails: true }, leave("failed"))).status, "failed");
    deepStrictEqual(
      await there(home, "failed", REMAINS),
      REMAINS,
      "its workers may write there still",
    );

    await createRun(home, plain, { config: {}, id: "cancelled", entry: "" });
    await leave("cancelled")();
    strictEqual((await cancelAndEnd(home, "cancelled")).status, "cancelled");
    deepStrictEqual(await there(home, "cancelled", REMAINS), []);
    deepStrictEqual(await there(home, "cancelled", KEPT), KEPT);
  } finally {
    await Deno.remove(home.dir, { recursive: true });
  }
});

Deno.test("recorded checkpoints stay, or all where a row cannot be read", async () => {
  const home = await freshFakeHome();
  try {
    await createFakeRun(home, "a");
    await executeFake(home, "a");
    const [row] = await home.store.read("a", {
      kinds: ["note/checkpoint"],
      newest_first: true,
      limit: 1,
    });
    const recorded = `checkpoints/RUN/${JSON.parse(row!.value).dir.split("/").at(-1)}/weights.json`;
    const stray = `${STRAY}/weights.json`;
    await put(home, "a", [recorded, stray]);
    const store = home.store as MemoryStore;
    const { seq, value } = store.rows("a").findLast(({ kind }) => kind === "note/checkpoint")!;
    store.damage("a", { seq, value: "garbage" });
    await removeLeftovers(home, "a", (text) => ok(false, text));
    deepStrictEqual(await there(home, "a", [recorded, stray]), [recorded, stray]);
    store.damage("a", { seq, value });
    await removeLeftovers(home, "a", (text) => ok(false, text));
    deepStrictEqual(await there(home, "a", [recorded, stray]), [recorded]);
  } finally {
    await Deno.remove(home.dir, { recursive: true });
  }
});

Deno.test("weights that stay of a dropped checkpoint are moved before it is removed", async () => {
  const home = await freshFakeHome();
  try {
    await createFakeRun(home, "a", { checkpoints: { every_rounds: 1, keep_last: 1 } });
    await executeFake(home, "a");
    const [dir, weights] = [STRAY, STRAY.replace("RUN", "RUN/weights")];
    const store = home.store as MemoryStore;
    const { seq } = store.rows("a").find(({ kind }) => kind === "note/checkpoint_dropped")!;
    const value = { dir: at(home, "a", dir), weights: at(home, "a", weights) };
    store.damage("a", { seq, value: JSON.stringify(value) });
    // As an engine leaves it that dies when it has recorded this.
    const [hf, ema] = [`${dir}/hf/weights.json`, `${dir}/ema/weights.json`];
    const state = `${dir}/state/trainer.json`;
    await put(home, "a", [hf, ema, state]);
    deepStrictEqual(await strayCheckpoints(home, (await home.store.head("a"))!), []);
    await removeLeftovers(home, "a", (text) => ok(false, text));
    const moved = [`${weights}/hf/weights.json`, `${weights}/ema/weights.json`];
    deepStrictEqual(await there(home, "a", [hf, ema, state, ...moved]), moved);
  } finally {
    await Deno.remove(home.dir, { recursive: true });
  }
});

Deno.test("what may not be removed stays, and why is said", async () => {
  const home = await freshFakeHome();
  try {
    const messages: string[] = [];
    await run(home, "a", {}, () => Promise.resolve());
    await put(home, "a", ["elsewhere/model"]);
    await Deno.symlink(`${home.dir}/elsewhere`, at(home, "a", "runs/RUN/.final.tmp"));
    await removeLeftovers(home, "a", (text) => messages.push(text));
    deepStrictEqual(await there(home, "a", ["elsewhere/model"]), ["elsewhere/model"]);
    match(messages.join(), /\.final\.tmp' because it is a link/);
  } finally {
    await Deno.remove(home.dir, { recursive: true });
  }
});
