import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { ArtifactStore, InvalidInputError } from "../../../engine/mod.ts";
import { MemoryStore } from "../../../testing/mod.ts";
import {
  createRun,
  forkRun,
  Home,
  recordedDefinition,
  resumeRun,
  serveRuns,
} from "../../../runs/mod.ts";
import { scratch } from "../../flows/fixtures.ts";
import { doubled } from "./serving_graphs.ts";

/** Says that it was run, whoever imports it. */
const HOSTILE =
  "globalThis.ranFromAStore = true; export const doubled = { config: {}, build() {} };";
const ran = () => "ranFromAStore" in globalThis;

type Place = { home: Home; dir: string; outside: string };

/** A home, and beside it a directory that nobody has named, with a module in it. */
async function withPlace(body: (place: Place) => Promise<void>): Promise<void> {
  const [dir, elsewhere] = [await scratch(), await Deno.realPath(await scratch())];
  const home = new Home(dir, {
    store: new MemoryStore(),
    artifacts: new ArtifactStore(`${dir}/artifacts`),
  });
  const outside = `${elsewhere}/module name.ts`;
  await Deno.writeTextFile(outside, HOSTILE);
  try {
    await body({ home, dir, outside });
  } finally {
    Deno.env.delete("HOLDFAST_ENTRY_ROOTS");
    for (const one of [dir, elsewhere]) await Deno.remove(one, { recursive: true });
  }
}

/** What may stand in a head without being a file that somebody chose. */
function refusedEntries(outside: string): string[] {
  const encoded = encodeURIComponent(HOSTILE);
  const file = pathToFileURL(outside).href;
  const up = `${pathToFileURL(Deno.cwd()).href}/%2e%2e/` + "%2e%2e/".repeat(20) +
    file.slice("file:///".length);
  return [
    `data:text/javascript,${encoded}`,
    `DATA:text/javascript;base64,${btoa(HOSTILE)}`,
    `blob:${crypto.randomUUID()}`,
    "http://127.0.0.1:9/module.ts",
    "https://example.invalid/module.ts",
    "npm:left-pad",
    "jsr:@std/path",
    "node:fs",
    "ws",
    "",
    outside,
    "./tests/runs/serving_graphs.ts",
    file,
    file.replace("file:///", "FILE:///"),
    file.replace("file:///", "file://host.invalid/"),
    `${file}?v=1`,
    up,
  ].map((entry) => `${entry}#doubled`);
}

Deno.test("no door runs an entry that is not a file of a directory which its user chose", () =>
  withPlace(async ({ home, outside }) => {
    for (const [i, entry] of refusedEntries(outside).entries()) {
      const id = `r${i}`;
      const head = await createRun(home, doubled, {
        config: { n: 1 },
        entry,
        id,
        queue: "default",
      });
      const says = (error: unknown) => {
        ok(error instanceof InvalidInputError, `${entry}: ${error}`);
        match(error.message, /^Cannot load the graph of run 'r\d+' from its entry: .+ Fix: /);
        return true;
      };
      await rejects(recordedDefinition(home.store, head), says);
      await rejects(resumeRun(home, id), says);
      await rejects(forkRun(home, head, { round: 1 }), says);
    }
    const events: string[] = [];
    await serveRuns(home, {
      queues: { default: Infinity },
      until_idle: true,
      poll_ms: 1,
      drain: new AbortController().signal,
      onEvent: (event) => events.push(event.type),
    });
    deepStrictEqual(new Set(events), new Set(["refused"]));
    strictEqual(ran(), false);
  }));

Deno.test("a link does not lead out of a chosen directory", () =>
  withPlace(async ({ home, dir, outside }) => {
    Deno.env.set("HOLDFAST_ENTRY_ROOTS", `/nowhere:${dir}`);
    await Deno.symlink(outside, `${dir}/inside.ts`);
    const entry = `${pathToFileURL(`${dir}/inside.ts`).href}#doubled`;
    const head = await createRun(home, doubled, { config: { n: 1 }, entry, id: "linked" });
    await rejects(recordedDefinition(home.store, head), /module name\.ts is in none of /);
    strictEqual(ran(), false);
  }));

Deno.test("an entry in an allowed directory is imported", () =>
  withPlace(async ({ home, dir }) => {
    const module = new URL("./serving_graphs.ts", import.meta.url).href;
    const modulePath = `${dir}/a #%é.ts`;
    await Deno.writeTextFile(modulePath, `export { doubled } from ${JSON.stringify(module)};`);
    const [ours, theirs] = [`${module}#doubled`, `${pathToFileURL(modulePath).href}#doubled`];
    const a = await createRun(home, doubled, { config: { n: 1 }, entry: ours, id: "a" });
    const b = await createRun(home, doubled, { config: { n: 1 }, entry: theirs, id: "b" });
    strictEqual((await recordedDefinition(home.store, a)).definition.name, "doubled");
    await rejects(recordedDefinition(home.store, b), InvalidInputError);
    Deno.env.set("HOLDFAST_ENTRY_ROOTS", dir);
    strictEqual((await recordedDefinition(home.store, b)).definition.name, "doubled");
    Deno.env.delete("HOLDFAST_ENTRY_ROOTS");
    // The current directory is one process's: another is asked.
    const runs = new URL("../../../runs/mod.ts", import.meta.url).href;
    const script = `const { recordedDefinition } = await import(${JSON.stringify(runs)});
      console.log((await recordedDefinition({ read: () => [] }, ${
      JSON.stringify(b)
    })).definition.name);`;
    const args = [
      "eval",
      "--quiet",
      "--config",
      new URL("../../../deno.json", import.meta.url).pathname,
      script,
    ];
    const { stdout } = await new Deno.Command(Deno.execPath(), { args, cwd: dir }).output();
    strictEqual(new TextDecoder().decode(stdout).trim(), "doubled");
  }));
