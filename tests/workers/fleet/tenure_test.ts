import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { CancelledError, FencedError, ManualClock } from "../../../engine/mod.ts";
import { Tenure } from "../../../workers/fleet/tenure.ts";

type Answers = { owns?: () => Promise<boolean>; supersededBy?: () => number | null };

function bench({ owns = () => Promise.resolve(true), supersededBy = () => null }: Answers = {}) {
  const events: unknown[] = [];
  const clock = new ManualClock();
  const tenure = new Tenure({
    run: "r",
    epoch: 3,
    clock,
    owns,
    owns_retry_ms: 1000,
    supersededBy,
    onLeave: (error) => events.push(["leave", error.code]),
    onFenced: (epoch) => events.push(["fenced", epoch]),
  });
  return { tenure, events, clock };
}

const silent = () => Promise.reject(new Error("no route"));

Deno.test("Tenure.owns() is true while the store and the announcement say so", async () => {
  const { tenure, events } = bench();
  deepStrictEqual([await tenure.owns(), await tenure.owns(), events], [true, true, []]);
  deepStrictEqual([tenure.ended, tenure.hasLeft], [null, false]);
});

Deno.test("Tenure ends once the store says that another engine has the run", async () => {
  const { tenure, events } = bench({ owns: () => Promise.resolve(false) });
  deepStrictEqual([await tenure.owns(), await tenure.owns()], [false, false]);
  deepStrictEqual(events, [["leave", "fenced"], ["fenced", null]]);
  strictEqual(tenure.ended instanceof FencedError && tenure.hasLeft, true);
});

Deno.test("Tenure ends when another engine announced itself, and names its epoch", async () => {
  const { tenure, events } = bench({ supersededBy: () => 4 });
  strictEqual(await tenure.owns(), false);
  deepStrictEqual(events, [["leave", "fenced"], ["fenced", 4]]);
  strictEqual(
    tenure.ended!.message,
    "Cannot continue with this run because epoch 4 owns it: this engine has 3",
  );
});

Deno.test("Tenure asks a silent store ten times, then leaves everything", async () => {
  let asks = 0;
  const { tenure, events, clock } = bench({ owns: () => (asks++, silent()) });
  const owned = tenure.owns();
  for (let i = 1; i < 10; i++) {
    await clock.untilSleeping();
    strictEqual(asks, i);
    await clock.advance(1000);
  }
  deepStrictEqual([await owned, asks, tenure.hasLeft], [false, 10, true]);
  deepStrictEqual(events, [["leave", "infrastructure"]]); // Nobody else has it for certain.
});

Deno.test("Tenure continues when a silent store answers again", async () => {
  let failures = 1;
  const { tenure, events, clock } = bench({
    owns: () => failures-- > 0 ? silent() : Promise.resolve(true),
  });
  const owned = tenure.owns();
  await clock.untilSleeping();
  await clock.advance(1000);
  deepStrictEqual([await owned, events], [true, []]);
});

Deno.test("Tenure.end() keeps the processes this engine's, and owns() false", async () => {
  const { tenure, events } = bench();
  tenure.end(new CancelledError("stopped"));
  deepStrictEqual([await tenure.owns(), tenure.hasLeft, events], [false, false, []]);
  tenure.fenced(9); // After its end nothing is news.
  deepStrictEqual(events, []);
});

Deno.test("Tenure.isLost() also asks after the end, and doubts a silent store", async () => {
  for (
    const [answers, lost] of [
      [{}, false],
      [{ owns: () => Promise.resolve(false) }, true],
      [{ owns: silent }, true],
      [{ supersededBy: () => 4 }, true],
    ] as [Answers, boolean][]
  ) {
    const { tenure } = bench(answers);
    tenure.end(new CancelledError("stopped"));
    strictEqual(await tenure.isLost(), lost);
  }
});
