import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { CancelledError, OutOfMemoryError, UserCodeError } from "../../../engine/mod.ts";
import { failureError, type FailureFacts, leavesGroupWhole } from "../../../workers/mod.ts";
import { failureReport } from "../../../testing/mod.ts";

const place = { run: "r1", group: "trainer", generation: 2, op: "train" };

Deno.test("failureError() has the root's cause, its verdict and every rank's part", () => {
  const reports = [
    failureReport({ rank: 0, at_ms: 1, message: "[gloo] Connection closed by peer [127.0.0.1]:1" }),
    failureReport({
      rank: 1,
      at_ms: 2,
      exception: "OutOfMemoryError",
      message: "CUDA out of memory. Tried 2 GiB",
    }),
  ];
  const error = failureError(reports, { ...place, ranks: 2 });
  ok(error instanceof OutOfMemoryError && error.retryable && error.counted);
  const { fingerprint, ...failure } = error.facts.failure as FailureFacts;
  deepStrictEqual(failure, {
    rank: 1,
    observed: "cuda_out_of_memory",
    role: "root",
    kind: "device_memory",
    cause: "out_of_memory",
    action: "replan",
    device: null,
  });
  ok(fingerprint.startsWith("cuda_out_of_memory|train|"));
  ok(error.message.includes("\n  rank 0 followed (peer_closed): [gloo] Connection closed by peer"));
  deepStrictEqual((error.facts.reports as { role: string }[]).map(({ role }) => role), [
    "cascade",
    "root",
  ]);
});

Deno.test("failureError() of code of the user shows its traceback and cannot be retried", () => {
  const traceback =
    "Traceback (most recent call last):\n  File \"my.py\", line 3, in loss\nKeyError: 'w'\n";
  const report = failureReport({
    cause: "user_code",
    exception: "UserCodeError",
    message: "my.py",
    traceback,
  });
  const error = failureError([report], place);
  ok(error instanceof UserCodeError && !error.retryable);
  ok(error.message.includes("\n  |   File \"my.py\", line 3, in loss\n  | KeyError: 'w'\n"));
});

Deno.test("failureError() of a process that was taken away costs no attempt", () => {
  const killed = { cause: "signal" as const, signal: "SIGKILL" };
  deepStrictEqual(
    [
      failureError([failureReport({ ...killed, oom_kills: 0 })], place).counted,
      failureError([failureReport({ ...killed, oom_kills: null })], place).counted,
      failureError([failureReport({ ...killed, oom_kills: 1 })], place).counted,
      failureError([failureReport({ ...killed, signal: "SIGTERM" })], place).counted,
    ],
    [false, true, true, false],
  );
});

Deno.test("failureError() names the broken GPU by its number or the kernel's name", () => {
  const xid = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, name=python, GPU has fallen off the bus.";
  const device = (kernel: string) =>
    (failureError([failureReport({ kernel: [kernel] })], place).facts.failure as FailureFacts)
      .device;
  deepStrictEqual([device(`${xid} (gpu 3)`), device(xid)], ["3", "0000:3b:00"]);
});

Deno.test("failureError() of a cancelled operation is a cancel", () => {
  const error = failureError([failureReport({ cause: "cancelled" })], place);
  ok(error instanceof CancelledError && !error.retryable);
});

Deno.test("failureError() says the cause, the log's end, its path and the next command", () => {
  const log_tail = Array.from({ length: 20 }, (_, i) => `line ${i}`);
  const report = failureReport({
    rank: 1,
    exception: "ValueError",
    message: "no",
    log_tail,
    log_path: "/logs/x.log",
  });
  const lines = failureError([report], place).message.split("\n");
  strictEqual(lines[0], "Cannot run 'train' on trainer because rank 1 failed: ValueError: no");
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
    "Cannot start sampler/0 because rank 0 failed: ModuleNotFoundError: No module named 'torch'\n" +
    "  fix: a managed Python environment may be damaged: the doctor says so, and a resume then " +
    "creates it again; in your own, install what is missing\n" +
    "  next: deno task rl doctor";
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
      leavesGroupWhole([failureReport({ cause: "disk_full" })], 1),
      leavesGroupWhole([failureReport({ cause: "other" })], 1),
    ],
    [true, false, true, true, true, false],
  );
});
