/**
 * Messages of any size and form, over a real agent and real ranks: each arrives whole or fails its
 * own task by name.
 */
import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { BadDataError, EngineError } from "../../../engine/mod.ts";
import { LIMITS } from "../../../workers/line/limits.ts";
import { Workers, type WorkersEvent } from "../../../workers/mod.ts";
import { Events, groupSpec, withHome } from "../fixtures.ts";

const python = Deno.env.get("HOLDFAST_TEST_PYTHON") ?? "";
const ECHO_PATH = new URL("../../python", import.meta.url).pathname;
const KEY = { key: "k", attempt: 1 };

const SIZES = [
  0,
  1000,
  LIMITS.inline_bytes_max - 100,
  LIMITS.inline_bytes_max + 100,
  5_300_000,
  LIMITS.message_bytes_max + 100,
];

/** JSON that is awkward for one library or another between the two ends. */
const awkward = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc.string({ unit: "grapheme", maxLength: 50 }),
  fc.constantFrom<unknown>("\ud800", "a\u0000b", 1e20, -1e20, 2 ** 53, 1e308, 5e-324, { "": [] }),
  fc.integer({ min: 1, max: 190 }).map((depth) =>
    Array.from({ length: depth }).reduce((inner) => [inner], 1 as unknown)
  ),
);

type Bench = { workers: Workers; events: Events<WorkersEvent> };

async function withAgent(body: (bench: Bench) => Promise<void>): Promise<void> {
  await withHome(async (home) => {
    const events = new Events<WorkersEvent>();
    const base = { run: "run", epoch: 1, attempt: 1, home, python, env: { PYTHONPATH: ECHO_PATH } };
    const workers = await Workers.start({ ...base, onEvent: events.push });
    try {
      await body({ workers, events });
      const lines = events.all.filter((event) =>
        event.type === "agent" && event.state === "attached"
      );
      strictEqual(lines.length, 1, "the line was not lost");
      const replaced = events.all.filter((event) =>
        event.type === "replaced" && event.group === "trainer"
      );
      deepStrictEqual(replaced, []);
    } finally {
      await workers.stop();
    }
  });
}

const real = (name: string, body: (bench: Bench) => Promise<void>) =>
  Deno.test({ name: `real agent: ${name}`, ignore: python === "", fn: () => withAgent(body) });

real("arguments and outputs of any size and form arrive whole", async ({ workers }) => {
  const group = workers.group(groupSpec({ ranks: 2, python }));
  const echoed = async (value: unknown) => {
    const { outputs, generation } = await group.call("echo", { value }, KEY);
    deepStrictEqual([outputs.map((output) => (output as { args: unknown }).args), generation], [
      [{ value }, { value }],
      1,
    ]);
  };
  for (const size of SIZES) await echoed("é".repeat(size / 2));
  const asJson = awkward.map((value) => JSON.parse(JSON.stringify(value))); // Which writes -0 as 0.
  await fc.assert(fc.asyncProperty(asJson, echoed), { numRuns: 40 });
});

real(
  "what no message holds fails its own work by name, and the line and the ranks go on",
  async ({ workers }) => {
    const group = workers.group(groupSpec({ python }));
    const fails = async (work: Promise<unknown>, says: RegExp) => {
      await rejects(work, (error) => {
        ok(error instanceof EngineError, `${error}`);
        match(error.message, says);
        return true;
      });
      strictEqual((await group.call("echo", { x: 1 }, KEY)).generation, 1);
    };
    const deep = Array.from({ length: 5000 }).reduce((inner) => [inner], 1 as unknown);
    await fails(group.call("echo", { deep }, KEY), /nested deeper than 200 levels/);
    await fails(
      group.call("blob", { sizes: Array(LIMITS.blobs_max + 1).fill(0) }, KEY),
      /at most 1024 blobs.*Fix: /s,
    );
    await fails(
      group.call("raise_user_code", { message: "é\ud800".repeat(1_000_000) }, KEY),
      /^Cannot run 'raise_user_code'/,
    );
    await group.call("chatter", { chars: 40_000_000, metrics: 100_000 }, KEY);
    const long = { text: "x".repeat(LIMITS.message_bytes_max) };
    const large = workers.group(groupSpec({ group: "large", python, spec: long }));
    await fails(
      large.ready(),
      /the start of large to agent .* has \d+ bytes: a message holds at most 33554432. Fix: /,
    );
    const chatty = workers.group(
      groupSpec({ group: "chatty", python, spec: { boot: "long_info" } }),
    );
    await fails(chatty.ready(), /what `boot` tells has \d+ bytes: it may have 262144. Fix: /);
    ok(large.failure instanceof BadDataError && chatty.failure instanceof BadDataError);
  },
);
