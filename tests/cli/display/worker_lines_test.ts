import { match, strictEqual } from "node:assert/strict";
import { type EngineError, NoProgressError, WorkerLostError } from "../../../engine/mod.ts";
import { failureError } from "../../../workers/mod.ts";
import { failureReport } from "../../../testing/mod.ts";
import { workerLine } from "../../../cli/display/worker_lines.ts";

const place = { run: "r", group: "trainer", generation: 1, op: "train" };
const replaced = (error: EngineError) =>
  workerLine({ type: "replaced", ...place, generation: 2, replacements: 1, error });
const failed = (report: Parameters<typeof failureReport>[0]) =>
  replaced(failureError([failureReport(report)], place));

Deno.test("workerLine() says which rank died of what, and that a new generation starts", () => {
  const killed = { rank: 1, signal: "SIGKILL", log_tail: ["a line of the log"] };
  strictEqual(
    failed({ ...killed, cause: "signal" }),
    "trainer rank 1 died (SIGKILL): generation 2 starts",
  );
  strictEqual(
    failed({ ...killed, cause: "out_of_memory" }),
    "trainer rank 1 ran out of memory (SIGKILL): generation 2 starts",
  );
  strictEqual(
    failed({ cause: "exit", exit_code: 7 }),
    "trainer rank 0 ended (exit code 7): generation 2 starts",
  );
  strictEqual(
    replaced(
      new NoProgressError("Cannot finish 'train'\n  log: x", { ...place, limit_ms: 9000 }),
    ),
    "trainer hung in 'train': no progress for 9 s: generation 2 starts",
  );
});

Deno.test("workerLine() says what a group without an operation's limit hung in", () => {
  const late = failureReport({ cause: "timeout", message: "it did not start within 60 s" });
  const start = { run: "r", group: "sampler/0", generation: 1 };
  strictEqual(
    replaced(failureError([late], start)),
    "trainer rank 0 hung: Cannot start sampler/0 because rank 0 failed: it did not start within " +
      "60 s: generation 2 starts",
  );
  match(
    replaced(failureError([late], { ...start, op: "train" }))!,
    /^trainer rank 0 hung: (?!.*(NaN|undefined)).*'train'/,
  );
});

Deno.test("workerLine() says that an agent was lost and why, and is silent while all goes well", () => {
  const agent = { type: "agent" as const, agent_id: "local-1", pid: 7 };
  strictEqual(
    workerLine({ ...agent, state: "lost", reason: "killed by SIGKILL" }),
    "agent local-1 was lost: killed by SIGKILL",
  );
  strictEqual(workerLine({ ...agent, state: "attached" }), null);
  const lost = new WorkerLostError("Cannot continue with the workers of this host", {
    agent_id: "local-1",
  });
  strictEqual(replaced(lost), "trainer was lost with its agent: generation 2 starts");
});
