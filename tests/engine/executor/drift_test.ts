import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { Crashed, MemoryStore } from "../../../testing/mod.ts";
import { bench } from "../fixtures.ts";
import { drifting, FIRST, type Sides } from "../stages.ts";

/** Runs `first` until it crashes after so many appends, then `second` on the same journal. */
async function replayed(first: Sides, second: Sides, appends: number) {
  const store = new MemoryStore();
  const before = drifting(first);
  await bench({ store }).engine.create(before, {}, { id: "run" });
  const dying = store.restarted({ crash_after_appends: appends });
  await rejects(bench({ store: dying }).engine.execute("run", before.build({})), Crashed);
  return await bench({ store: dying.restarted() }).engine.execute(
    "run",
    drifting(second).build({}),
  );
}

Deno.test("a changed input is replay_drift and shows the difference", async () => {
  const outcome = await replayed(FIRST, { ...FIRST, input: 2 }, 2);
  ok(outcome.status === "failed");
  strictEqual(outcome.error.code, "replay_drift");
  deepStrictEqual(outcome.error.facts.difference, ["- n: 1", "+ n: 2"]);
});

Deno.test("replay: rerun drops what was recorded, accept keeps it", async () => {
  const rerun: string[] = [];
  const again = await replayed(FIRST, { ...FIRST, input: 2, replay: "rerun", ran: rerun }, 2);
  deepStrictEqual(again, { status: "done", output: 2 });
  deepStrictEqual(rerun, ["a", "b"]);
  const accept: string[] = [];
  const kept = await replayed(FIRST, { ...FIRST, input: 2, replay: "accept", ran: accept }, 2);
  deepStrictEqual(kept, { status: "done", output: 2 });
  deepStrictEqual(accept, []);
});

Deno.test("a recorded child that is not asked for is replay_drift by default", async () => {
  const outcome = await replayed(FIRST, { ...FIRST, steps: ["a"] }, 2);
  ok(outcome.status === "failed");
  match(outcome.error.message, /- work\/b#1 \(recorded, not requested\)/);
  for (const replay of ["accept", "rerun"] as const) {
    deepStrictEqual(await replayed(FIRST, { ...FIRST, steps: ["a"], replay }, 2), {
      status: "done",
      output: 1,
    });
  }
});
