import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { type EngineError, ManualClock } from "../../../engine/mod.ts";
import type { GroupLine } from "../../../workers/fleet/group_line.ts";
import { running } from "../../../workers/fleet/inheritance.ts";
import { limitSilence, limitTime } from "../../../workers/fleet/operation_limits.ts";

function bench() {
  const clock = new ManualClock();
  const link = {} as GroupLine;
  const operation = running({ task: "t", op: "train", key: "k", link }, clock.monotonic());
  const over = new AbortController();
  const hung: EngineError[] = [];
  const limited = {
    clock,
    place: { run: "r", group: "trainer", generation: 1, log_dir: "/l" },
    limit_ms: 1000,
    signal: over.signal,
    hung: (_: unknown, error: EngineError) => void hung.push(error),
    hang: () => ({ progress: [], ranks: [] }),
  };
  return { clock, operation, over, hung, limited };
}

/** Code and first line of each error. */
const heads = (errors: EngineError[]) =>
  errors.map(({ code, message }) => [code, message.split("\n")[0]]);

Deno.test("limitTime() reports an operation that still runs at its limit", async () => {
  const { clock, operation, hung, limited } = bench();
  limitTime(operation, { ...limited, since: "started" });
  await clock.advance(999);
  deepStrictEqual(hung, []);
  operation.progressed_ms = clock.monotonic(); // Progress does not extend it.
  await clock.advance(1);
  deepStrictEqual(heads(hung), [[
    "timeout",
    "Cannot finish 'train' on trainer because it still runs 1000 ms after it was started",
  ]]);
});

Deno.test("limitTime() names the setting that its limit comes from", async () => {
  const { clock, operation, hung, limited } = bench();
  limitTime(operation, { ...limited, since: "started", setting: "workers.train_timeout_s" });
  await clock.advance(1000);
  deepStrictEqual(heads(hung), [[
    "timeout",
    "Cannot finish 'train' on trainer because it still runs 1000 ms after it was started: " +
    "workers.train_timeout_s allows no more",
  ]]);
});

Deno.test("limitSilence() reports an operation whose ranks show no progress", async () => {
  const { clock, operation, hung, limited } = bench();
  limitSilence(operation, limited);
  await clock.advance(600);
  operation.progressed_ms = clock.monotonic();
  await clock.advance(999);
  deepStrictEqual(hung, []);
  await clock.advance(1);
  deepStrictEqual(heads(hung), [[
    "no_progress",
    "Cannot finish 'train' on trainer because it has made no progress for 1000 ms",
  ]]);
});

Deno.test("limitTime() and limitSilence() end with the operation", async () => {
  const { clock, operation, over, hung, limited } = bench();
  limitTime(operation, { ...limited, since: "cancelled" });
  limitSilence(operation, limited);
  over.abort(new Error("the operation is over"));
  await clock.advance(5000);
  deepStrictEqual(hung, []);
  strictEqual(clock.sleeping, 0);
});
