import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { RunProgress } from "../../../cli/display/run_progress.ts";
import type { EngineEventBody } from "../../../engine/mod.ts";

function progress() {
  const time = { now: 0 };
  const of = new RunProgress(() => time.now);
  return { time, of, on: (body: EngineEventBody) => of.on({ run: "r", at_ms: 0, ...body }) };
}

const started = (key: string, runs_on: string): EngineEventBody => (
  { type: "stage_started", key, stage: key, runs_on, phase: "", attempt: 1 }
);
const finished = (key: string): EngineEventBody => (
  { type: "stage_finished", key, stage: key, runs_on: "", phase: "", ms: 1, output: null }
);
const closed = (round: number, times = 10, loop = "round"): EngineEventBody => (
  { type: "round_closed", loop, round, times, carried: {}, tally: {}, total: {} }
);
const resumed: EngineEventBody = { type: "run_started", epoch: 2, resumed: true, name: "r" };

Deno.test("RunProgress says which workers that had work have none, and who has", () => {
  const { of, on } = progress();
  const seen: (string | null)[] = [];
  const step = (event: EngineEventBody) => {
    on(event);
    seen.push(of.waiting());
  };
  step(started("generate", "sampler")); // No trainer is known yet.
  step(started("train", "trainer"));
  step(finished("generate"));
  step(started("score", "engine"));
  step(finished("train"));
  step(finished("score"));
  deepStrictEqual(seen, [
    null,
    null,
    "sampler waits for trainer",
    "sampler waits for trainer",
    "sampler and trainer wait for engine",
    null,
  ]);
});

Deno.test("RunProgress counts the time left from the first round that this engine closed in this loop", () => {
  const { time, of, on } = progress();
  const left = (event: EngineEventBody, ms: number) => {
    time.now += ms;
    on(event);
    return of.remainingSeconds();
  };
  deepStrictEqual(
    [left(closed(1), 5000), left(closed(2), 1000), left(closed(3), 3000)],
    [null, 8, 14],
  );
  on(resumed);
  deepStrictEqual([left(closed(4), 90_000), left(closed(5), 1000)], [null, 5]);
  deepStrictEqual([left(closed(1, 3, "step"), 1000), left(closed(2, 3, "step"), 500)], [null, 0.5]);
  left(closed(1, Infinity, "other"), 1000);
  strictEqual(left(closed(2, Infinity, "other"), 1000), null);
});

Deno.test("RunProgress forgets what the last engine had in progress, and keeps 40 points of a curve", () => {
  const { of, on } = progress();
  on(started("train", "trainer"));
  on(resumed);
  deepStrictEqual(of.stages(), []);
  for (let i = 0; i < 50; i++) {
    on({ type: "metrics", key: "k", metrics: { "reward/mean": i, "completions/length_mean": -i } });
  }
  deepStrictEqual([of.rewards.length, of.rewards[0], of.lengths.at(-1)], [40, 10, -49]);
});
