import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import {
  type Failure,
  InfrastructureError,
  OutOfMemoryError,
  WorkerLostError,
} from "../../../engine/mod.ts";
import type { ErrorJson } from "../../../engine/errors.ts";
import { nextAttempt } from "../../../engine/executor/retry.ts";
import { AT_ONCE, bench, failures, runOnce, soleStage } from "../fixtures.ts";

Deno.test("each cause has its budget: 3 for the machine's, 1 for user code", async () => {
  const outOfMemory = () => new OutOfMemoryError("no memory");
  const lost = () => new InfrastructureError("no disk");
  const taken = () => new WorkerLostError("preempted", {}, { counted: false });
  const cases: {
    errors: (() => Error)[];
    attempts: number;
    attempts_max?: number | { user_code: number };
  }[] = [
    { errors: [lost, lost, lost, lost], attempts: 3 },
    { errors: [() => new TypeError("bug")], attempts: 1 },
    {
      errors: [() => new TypeError("bug"), () => new TypeError("bug")],
      attempts: 2,
      attempts_max: { user_code: 2 },
    },
    { errors: [lost, outOfMemory, lost, outOfMemory, lost], attempts: 5 },
    { errors: [lost, lost, lost], attempts: 1, attempts_max: 1 },
    { errors: [taken, lost, taken, taken, lost, taken, lost], attempts: 7 },
    { errors: Array.from({ length: 60 }, () => taken), attempts: 50 }, // Not for ever.
  ];
  for (const { errors, attempts, attempts_max } of cases) {
    const used = bench(AT_ONCE);
    let starts = 0;
    const { definition } = soleStage(() => {
      throw errors[starts++]!();
    }, { attempts_max });
    const outcome = await runOnce(used, definition);
    ok(outcome.status === "failed");
    strictEqual(outcome.error.code, "stage_failed");
    strictEqual(starts, attempts);
    strictEqual(failures(used.store).at(-1)?.next_ms, null);
  }
});

Deno.test("a retry waits as recorded, and a restart neither waits nor counts again", async () => {
  const used = bench({ backoff: { first_ms: 1000, max_ms: 60_000 } });
  const starts: number[] = [];
  const { definition, built } = soleStage((_, ctx) => {
    starts.push(ctx.attempt);
    throw new InfrastructureError("again");
  }, { runs_on: "sampler" });
  await used.engine.create(definition, {}, { id: "run" });
  const dying = used.store.restarted();
  const begun = used.clock.now();
  const first = bench({ store: dying, clock: used.clock }).engine.execute("run", built);
  await used.clock.untilSleeping(2);
  const next_ms = failures(dying)[0]!.next_ms!;
  ok(next_ms - begun >= 250 && next_ms - begun <= 500, `${next_ms - begun} ms`);
  const second = bench({ store: dying.restarted(), clock: used.clock }).engine.execute(
    "run",
    built,
  );
  await used.clock.advance(120_000);
  const outcome = await second;
  strictEqual(outcome.status, "failed");
  strictEqual((await first).status, "fenced");
  deepStrictEqual(starts, [1, 2, 3]);
});

const BACKOFF = { first_ms: 1000, max_ms: 10_000 };

function error(cause_kind: ErrorJson["cause_kind"], rest: Partial<ErrorJson> = {}): ErrorJson {
  return { code: cause_kind, message: "", facts: {}, cause_kind, retryable: true, ...rest };
}

const after = (count: number, cause_kind: ErrorJson["cause_kind"]): Failure[] =>
  Array.from({ length: count }, (_, i) => ({
    attempt: i + 1,
    error: error(cause_kind),
    next_ms: 0,
  }));

Deno.test("nextAttempt() waits half of a doubling time and a random part of the rest", () => {
  const next = (failures: number, jitter: number) =>
    nextAttempt({ attempts_max: 100 }, after(failures, "timeout"), {
      error: error("timeout"),
      now_ms: 5000,
      backoff: BACKOFF,
      jitter,
    });
  deepStrictEqual([0, 1, 2, 3].map((failures) => next(failures, 0)), [5500, 6000, 7000, 9000]);
  deepStrictEqual([0, 1, 2, 3].map((failures) => next(failures, 1)), [6000, 7000, 9000, 13_000]);
  deepStrictEqual([4, 50].map((failures) => next(failures, 1)), [15_000, 15_000]);
});

Deno.test("nextAttempt() is null for what would fail again, unless a budget is set", () => {
  const next = (found: ErrorJson, attempts_max?: { user_code: number }) =>
    nextAttempt({ attempts_max }, [], {
      error: found,
      now_ms: 0,
      backoff: BACKOFF,
      jitter: 0,
    });
  strictEqual(next(error("infrastructure", { retryable: false })), null);
  strictEqual(next(error("user_code", { retryable: false })), null);
  strictEqual(next(error("user_code", { retryable: false }), { user_code: 2 }), 500);
});
