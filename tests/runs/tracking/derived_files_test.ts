/**
 * Only what is recorded must survive: of a home's other files any may be missing or hold anything
 * at any time.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { z } from "zod";
import type { EngineEvent, GraphDefinition } from "../../../engine/mod.ts";
import { createRun, executeRun, Home } from "../../../runs/mod.ts";
import { quickstart } from "../../../flows/quickstart.ts";
import { fakeRun, FakeTrainer } from "../../../testing/mod.ts";
import { rowsOf, scratch, smallQuickstart } from "../../flows/fixtures.ts";

const CONFIG = smallQuickstart({ rounds: 4, every_rounds: 2 });
const ROWS = { train: rowsOf(16), eval: rowsOf(2) };
const STOPPED_AT = /^round\/4\//;

/** The quickstart, recorded without the blocks that ask for real workers. */
const definition = {
  name: quickstart.name,
  config: z.strictObject({}),
  build: () => quickstart.build(CONFIG),
} as unknown as GraphDefinition<
  Record<string, never>,
  unknown,
  { policy: { version: string }; exported: { digest: string } }
>;

/** Small files beside the journal. The first two are of real workers. */
const FACTS = ["hub.json", "workers.json", "metrics.json", "owner.json"];

/**
 * What a run goes on from. Everything else in a home can be made again, and a new kind of file is
 * taken for such by this test.
 */
const RECORDED = [
  /^holdfast\.db/,
  /^artifacts\/[0-9a-f]{2}\//,
  /^checkpoints\/run\/\d+-[0-9a-f]{12}-\d+-\d+\//,
];

const HARMS: Record<string, (path: string, size: number) => Promise<void>> = {
  missing: (path) => Deno.remove(path),
  empty: (path) => Deno.writeTextFile(path, ""),
  torn: (path, size) => Deno.truncate(path, size >> 1),
  garbage: (path) => Deno.writeTextFile(path, '\0{"]garbage\n\n'),
};

async function* filesBelow(dir: string, name = ""): AsyncGenerator<string> {
  for await (const entry of Deno.readDir(`${dir}/${name}`)) {
    const path = name === "" ? entry.name : `${name}/${entry.name}`;
    if (entry.isDirectory) yield* filesBelow(dir, path);
    else yield path;
  }
}

/**
 * One engine's start, in a process of its own. `stop`: it is drained while it trains the last
 * round.
 */
async function start(
  dir: string,
  { stop = false, lines: lines = [] }: { stop?: boolean; lines?: string[] } = {},
) {
  const home = Home.open(dir);
  try {
    const { store, artifacts } = home;
    const head = await store.head("run") ??
      await createRun(home, definition, { config: {}, id: "run", entry: "" });
    const drain = new AbortController();
    const trainer = new FakeTrainer({ artifacts });
    trainer.hook = ({ op, key }) => {
      if (stop && op === "train" && STOPPED_AT.test(key)) drain.abort();
    };
    const fakes = await fakeRun({
      store,
      artifacts,
      run: "run",
      dir: `${dir}/fakes`,
      rows: ROWS,
      trainer,
    });
    const resources = fakes.resources.filter(({ name }) => name !== "paths");
    const onEvent = (event: EngineEvent) => void (event.type === "log" && lines.push(event.text));
    const options = { drain: drain.signal, resources, rows: ROWS, onEvent };
    return await executeRun(home, { head, graph: definition.build({}) }, options);
  } finally {
    await home.close();
  }
}

async function ended(dir: string, lines: string[] = []) {
  const outcome = await start(dir, { lines });
  ok(outcome.status === "done", JSON.stringify(outcome));
  const { policy, exported } = outcome.output as unknown as {
    policy: { version: string };
    exported: { digest: string };
  };
  return [policy.version, exported.digest];
}

async function inHome<T>(work: (dir: string) => Promise<T>): Promise<T> {
  const dir = await scratch();
  try {
    return await work(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

async function derivedFiles(dir: string): Promise<string[]> {
  const files = await Array.fromAsync(filesBelow(dir));
  return files.filter((path) => !RECORDED.some((pattern) => pattern.test(path))).sort();
}

const calm = await inHome(ended);

Deno.test("a run whose files are whole tells of none that was damaged", () =>
  inHome(async (dir) => {
    const lines: string[] = [];
    await start(dir, { stop: true, lines });
    await ended(dir, lines);
    deepStrictEqual(lines.filter((line) => line.includes("damaged")), []);
  }));

for (const [name, harm] of Object.entries(HARMS)) {
  Deno.test(`a run whose derived files are all ${name} at once resumes, and ends with the digest of its calm twin`, () =>
    inHome(async (dir) => {
      strictEqual((await start(dir, { stop: true })).status, "interrupted");
      for (const fact of FACTS.slice(0, 2)) {
        await Deno.writeTextFile(`${dir}/runs/run/${fact}`, '{"epoch":1}');
      }
      const derived = await derivedFiles(dir);
      for (
        const expected of [
          "nonce",
          "stores",
          "artifacts/homes",
          "runs/run/owner.json",
          "runs/run/metrics.jsonl",
        ]
      ) {
        ok(derived.includes(expected), derived.join("\n"));
      }
      for (const path of derived) {
        await harm(`${dir}/${path}`, (await Deno.stat(`${dir}/${path}`)).size);
      }
      const messages: string[] = [];
      deepStrictEqual(await ended(dir, messages), calm);
      for (
        const path of name === "missing"
          ? []
          : ["nonce", "stores", ...FACTS.map((fact) => `runs/run/${fact}`)]
      ) {
        ok(
          messages.some((line) => line.startsWith(`${dir}/${path} is damaged`)),
          `${path} is told of:\n${messages.join("\n")}`,
        );
      }
      const home = Home.open(dir);
      const { id } = await home.store.identity();
      ok(home.knownStores().some((known) => known.id === id), "the list of stores names it again");
      await home.close();
      const lines = (await Deno.readTextFile(`${dir}/runs/run/metrics.jsonl`)).trim().split("\n");
      ok(
        lines.length > 6 && lines.every((line) => JSON.parse(line).metrics),
        "metrics are whole again",
      );
    }));
}
