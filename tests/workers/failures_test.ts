import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { failureError, FailureReport, failureReport, leavesGroupWhole, rootFailure } from "../../workers/mod.ts";

const place = { run: "r1", group: "trainer", generation: 2, op: "train" };

Deno.test("rootFailure() is the rank at fault, not the peers and waiters that spoke first", () => {
  const reports = [
    failureReport({ rank: 0, cause: "peer", at_ms: 1 }),
    failureReport({ rank: 1, cause: "timeout", at_ms: 2 }),
    failureReport({ rank: 2, cause: "signal", at_ms: 30 }),
    failureReport({ rank: 3, cause: "other", at_ms: 40 }),
  ];
  strictEqual(rootFailure(reports).rank, 2);
  strictEqual(rootFailure(reports.slice(0, 2)).rank, 0);
});

Deno.test("failureError() maps every reported cause to one of the engine's", () => {
  const causes = Object.fromEntries(
    FailureReport.shape.cause.options.map((
      cause,
    ) => [cause, failureError([failureReport({ cause })], place).cause_kind]),
  );
  deepStrictEqual(causes, {
    exit: "worker_lost",
    signal: "worker_lost",
    import_error: "infrastructure",
    out_of_memory: "out_of_memory",
    user_code: "user_code",
    bad_data: "bad_data",
    cancelled: "infrastructure",
    peer: "worker_lost",
    timeout: "timeout",
    other: "infrastructure",
  });
});

Deno.test("failureError() says the cause first, then the log's last lines, its path and the next command", () => {
  const log_tail = Array.from({ length: 20 }, (_, i) => `line ${i}`);
  const report = failureReport({ rank: 1, exception: "ValueError", message: "no", log_tail, log_path: "/logs/x.log" });
  const lines = failureError([report], place).message.split("\n");
  strictEqual(lines[0], "Cannot run 'train' on trainer as rank 1 failed: ValueError: no");
  deepStrictEqual([lines[1], lines[12], lines.length], ["  | line 8", "  | line 19", 15]);
  deepStrictEqual(lines.slice(-2), ["  log: /logs/x.log", "  next: deno task rl logs r1"]);
});

Deno.test("failureError() of a failed import cannot be retried and points at the doctor", () => {
  const report = failureReport({
    cause: "import_error",
    exception: "ModuleNotFoundError",
    message: "No module named 'torch'",
  });
  const error = failureError([report], { run: "r1", group: "sampler/0", generation: 1 });
  strictEqual(error.retryable, false);
  const wanted =
    "Cannot start sampler/0 as rank 0 failed: ModuleNotFoundError: No module named 'torch'\n  next: deno task rl doctor";
  strictEqual(error.message, wanted);
});

Deno.test("leavesGroupWhole() only if every rank says that its state is as before", () => {
  const mild = failureReport({ cause: "user_code" });
  deepStrictEqual(
    [
      leavesGroupWhole([mild], 1),
      leavesGroupWhole([mild], 2), // The other rank finished: the two differ now.
      leavesGroupWhole([mild, failureReport({ rank: 1, cause: "bad_data" })], 2),
      leavesGroupWhole([mild, failureReport({ rank: 1, cause: "cancelled" })], 2),
      leavesGroupWhole([failureReport({ cause: "other" })], 1),
    ],
    [true, false, true, true, false],
  );
});
