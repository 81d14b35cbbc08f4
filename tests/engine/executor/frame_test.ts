import { deepStrictEqual, rejects, strictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import { AmbiguousKeyError, ManualClock, UserCodeError } from "../../../engine/mod.ts";
import { Execution } from "../../../engine/executor/executor.ts";
import { Frame } from "../../../engine/executor/frame.ts";
import type { StageTask } from "../../../engine/executor/task.ts";
import { Journal } from "../../../engine/journal/journal.ts";
import { Entry } from "../../../engine/journal/tree.ts";
import { DEFAULT_BACKOFF } from "../../../engine/executor/retry.ts";
import { Slots } from "../../../engine/graph/slots.ts";
import { defineStage } from "../../../engine/graph/stage.ts";
import { MemoryStore } from "../../../testing/mod.ts";
import { artifacts } from "../fixtures.ts";

const stage = defineStage({
  name: "work",
  version: 1,
  input: z.unknown(),
  output: z.unknown(),
  run: () => null,
});

/** An execution of an empty run, and frames in it. */
function opened() {
  const [clock, store] = [new ManualClock(), new MemoryStore()];
  const run = { run: "run", epoch: 1 };
  const journal = new Journal({ ...run, store, artifacts, clock, last_seq: 0, onBroken() {} });
  const execution = new Execution({
    ...run,
    seed: 0,
    graph_hash: "",
    journal,
    artifacts,
    clock,
    slots: new Slots({}),
    backoff: DEFAULT_BACKOFF,
    resources: new Map(),
  });
  const framed = (parent?: StageTask["parent"]) => {
    const scope = { in_round: null, addTally() {} };
    const task = { entry: new Entry("work"), stage, input: null, scope, after: [], parent };
    const frame = new Frame(execution, { task, attempt: 1 });
    frame.begin();
    return frame;
  };
  return { execution, framed, clock };
}

Deno.test("Frame.stop() aborts the body and what it called, and refuses what they do next", () => {
  const { framed } = opened();
  const parent = framed();
  const [child, released] = [framed(parent), framed(parent)];
  parent.release(released);
  const reason = new Error("cancelled");
  parent.stop(reason);
  strictEqual(parent.signal.reason, reason);
  strictEqual(child.signal.reason, reason);
  throws(() => child.check(), reason);
  strictEqual(released.signal.aborted, false);
});

Deno.test("Frame.begin() under a stopped parent stops immediately", () => {
  const { framed } = opened();
  const parent = framed();
  const reason = new Error("cancelled");
  parent.stop(reason);
  strictEqual(framed(parent).closed, reason);
});

Deno.test("Frame.end() refuses what the body still does, and names the attempt", () => {
  const { framed } = opened();
  const frame = framed();
  frame.check();
  frame.end();
  throws(() => frame.check(), /^InfrastructureError: Cannot act for 'work' because attempt 1 has/);
});

Deno.test("Frame.child() numbers calls of one name, and refuses two open ones", async () => {
  const { framed } = opened();
  const frame = framed();
  const keyOf = (entry: Entry) => Promise.resolve(entry.key);
  strictEqual(await frame.child("step", {}, keyOf), "work/step#1");
  strictEqual(await frame.child("step", {}, keyOf), "work/step#2");
  strictEqual(await frame.child("step", { id: "x" }, keyOf), "work/step#x");
  const held = Promise.withResolvers<void>();
  const first = frame.child("wait", {}, () => held.promise);
  await rejects(frame.child("wait", {}, keyOf), AmbiguousKeyError);
  await rejects(frame.child("step", { id: "x" }, keyOf), AmbiguousKeyError);
  held.resolve();
  await first;
  deepStrictEqual([...frame.requested], ["step#1", "step#2", "step#x", "wait#1"]);
});

Deno.test("a body that waits for its calls is not what a drain waits for", async () => {
  const { execution, framed } = opened();
  const frame = framed();
  const held = Promise.withResolvers<void>();
  let quiet = false;
  const settled = execution.quiet().then(() => quiet = true);
  execution.drain();
  await execution.settings.clock.pause();
  strictEqual(quiet, false, "the body itself works");
  const call = frame.child("sleep", {}, () => held.promise);
  await settled;
  held.resolve();
  await call;
});

Deno.test("Frame.checkAwaited() counts open work, and no open sleep", async () => {
  const { framed } = opened();
  const frame = framed();
  const held = Promise.withResolvers<void>();
  const sleep = frame.child("sleep", {}, () => held.promise);
  frame.checkAwaited();
  const step = frame.work("step", {}, () => held.promise);
  throws(
    () => frame.checkAwaited(),
    (error) =>
      error instanceof UserCodeError && error.message.includes("1 open step(s) or call(s)"),
  );
  held.resolve();
  await Promise.all([sleep, step]);
  frame.checkAwaited();
});

Deno.test("Frame.takeNotes() is what was emitted, then the notes, as rows", async () => {
  const { framed } = opened();
  const frame = framed();
  frame.note({ kind: "note/seen", key: "work", value: { n: 1 } });
  frame.emitted.push({ kind: "metrics", key: "work", value: { loss: 2 } });
  deepStrictEqual((await frame.takeNotes()).map(({ kind, value }) => [kind, value]), [
    ["metrics", '{"loss":2}'],
    ["note/seen", '{"n":1}'],
  ]);
  strictEqual(frame.takeTally(), undefined);
  frame.tally({ read: 1 });
  frame.tally({ read: 2, kept: 1 });
  deepStrictEqual(frame.takeTally(), { read: 3, kept: 1 });
});
