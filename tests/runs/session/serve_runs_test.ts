import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { ArtifactStore, type ServeEvent } from "../../../engine/mod.ts";
import { MemoryStore } from "../../../testing/mod.ts";
import { createRun, Home, serveRuns, slotsOf } from "../../../runs/mod.ts";
import { scratch } from "../../flows/fixtures.ts";
import { doubled, older } from "./serving_graphs.ts";

const MODULE = new URL("./serving_graphs.ts", import.meta.url).href;

async function served(home: Home, options: { entries?: string[] } = {}): Promise<ServeEvent[]> {
  const events: ServeEvent[] = [];
  const queues = { default: Infinity };
  await serveRuns(home, {
    queues,
    until_idle: true,
    poll_ms: 1,
    drain: new AbortController().signal,
    ...options,
    onEvent: (event) => events.push(event),
  });
  return events;
}

async function withHome(body: (home: Home) => Promise<void>): Promise<void> {
  const dir = await scratch();
  const home = new Home(dir, {
    store: new MemoryStore(),
    artifacts: new ArtifactStore(`${dir}/artifacts`),
  });
  try {
    await body(home);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("serveRuns() runs graphs of a user's module where the run says it is", () =>
  withHome(async (home) => {
    await createRun(home, doubled, {
      config: { n: 4 },
      entry: `${MODULE}#doubled`,
      id: "a",
      queue: "default",
    });
    await served(home);
    strictEqual((await home.store.head("a"))?.status, "done");
    const [output] = await home.store.read("a", { kinds: ["note/output"] });
    strictEqual(output?.value, "8");
  }));

Deno.test("serveRuns() leaves a run of different code or a missing module", () =>
  withHome(async (home) => {
    const elsewhere = "file:///elsewhere/graphs.ts#doubled";
    await createRun(home, older, {
      config: { n: 1 },
      entry: `${MODULE}#doubled`,
      id: "old",
      queue: "default",
    });
    await createRun(home, doubled, {
      config: { n: 1 },
      entry: elsewhere,
      id: "far",
      queue: "default",
    });
    const reasons = (await served(home)).map((event) =>
      event.type === "refused" ? event.reason : event.type
    );
    match(
      reasons[0]!,
      /Cannot run 'old' because its graph differs here: \w{12} there, \w{12} here/,
    );
    match(
      reasons[1]!,
      /Cannot run 'far' because its graph cannot be loaded from file:.*Name a module.*--entry/,
    );
    strictEqual(reasons.length, 2);
    const types = (await served(home, { entries: [MODULE] })).map(({ type }) => type);
    deepStrictEqual(types, ["refused", "taken", "ended"]);
    strictEqual((await home.store.head("far"))?.status, "done");
    strictEqual((await home.store.head("old"))?.status, "created");
  }));

Deno.test("slotsOf(): nothing without workers, and nothing on a CPU", () => {
  deepStrictEqual(slotsOf({ n: 1 }), {});
  const cpu = { device: "cpu", devices: null, ranks: 2 };
  deepStrictEqual(
    slotsOf({ trainer: cpu, sampler: { ...cpu, replicas: 1, engine: "huggingface", vllm: {} } }),
    {},
  );
});
