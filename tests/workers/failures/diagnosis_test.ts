import { deepStrictEqual, ok, strictEqual, throws } from "node:assert/strict";
import { classify, diagnose, fingerprint } from "../../../workers/failures/diagnosis.ts";
import { POLICY } from "../../../workers/failures/causes.ts";
import { failureReport } from "../../../testing/mod.ts";
import { COMMUNICATION_CASES } from "../failure_cases/communication.ts";
import { PROCESS_CASES } from "../failure_cases/process.ts";

Deno.test("classify() reads every case of the catalogue as it must be read", () => {
  const cases = [...COMMUNICATION_CASES, ...PROCESS_CASES];
  const read = cases.map(([name, evidence]) => {
    const { observed, kind, role } = classify(evidence);
    return [name, observed, kind, role, POLICY[kind].cause];
  });
  deepStrictEqual(read, cases.map(([name, , wanted]) => [name, ...wanted]));
});

const scene = { during: "operation", ranks: 4 } as const;
const peer = (rank: number, at_ms: number) =>
  failureReport({ rank, at_ms, message: "[gloo] Connection closed by peer [127.0.0.1]:1" });
const waited = (rank: number, at_ms: number) =>
  failureReport({
    rank,
    at_ms,
    message: "[gloo] Timed out waiting 6000ms for recv operation to complete",
  });
const roles = ({ judged }: ReturnType<typeof diagnose>) =>
  judged.map(({ report, verdict }) => [report.rank, verdict.observed, verdict.role]);

Deno.test("diagnose() takes the rank at fault, not the peers and waiters that spoke first", () => {
  const reports = [
    peer(0, 1),
    waited(1, 2),
    failureReport({ rank: 2, cause: "signal", exception: null, signal: "SIGSEGV", at_ms: 30 }),
    failureReport({ rank: 3, at_ms: 40, exception: "ValueError", message: "no" }),
  ];
  const diagnosis = diagnose(reports, scene);
  strictEqual(diagnosis.root.report.rank, 2);
  deepStrictEqual(roles(diagnosis), [
    [0, "peer_closed", "cascade"],
    [1, "gloo_timeout", "cascade"],
    [2, "crash_signal", "root"],
    [3, "exception", "root"],
  ]);
});

Deno.test("diagnose() takes the silent rank where every other one only waited", () => {
  const diagnosis = diagnose([waited(0, 5), waited(1, 4), waited(3, 6)], scene);
  deepStrictEqual([diagnosis.root.report.rank, diagnosis.root.verdict.observed], [
    2,
    "silent_rank",
  ]);
  ok(/3 ranks waited for it/.test(diagnosis.root.report.message));
});

Deno.test("diagnose() takes the silent rank that others name", () => {
  const barrier = failureReport({
    rank: 0,
    message: "[Rank 0]: Ranks 3 failed to pass monitoredBarrier in 4000 ms",
  });
  strictEqual(diagnose([barrier, peer(1, 2)], scene).root.report.rank, 3);
});

Deno.test("diagnose() takes a rank that others name before earlier ones", () => {
  const remote = failureReport({
    rank: 1,
    at_ms: 9,
    message: "remote error detected from rank: 2",
  });
  const reports = [peer(0, 1), remote, peer(2, 5), peer(3, 2)];
  strictEqual(diagnose(reports, scene).root.report.rank, 2);
  strictEqual(
    diagnose([peer(0, 3), peer(1, 2), peer(2, 5), peer(3, 4)], scene).root.report.rank,
    1,
  );
});

Deno.test("diagnose() never takes a teardown for the root while anything else spoke", () => {
  const aborted = failureReport({
    rank: 0,
    at_ms: 1,
    message: "NCCL communicator was aborted on rank 0.",
  });
  const cancelled = failureReport({ rank: 1, at_ms: 2, cause: "cancelled" });
  strictEqual(diagnose([aborted, cancelled, peer(2, 9), waited(3, 10)], scene).root.report.rank, 2);
});

Deno.test("diagnose() refuses to diagnose without a report", () => {
  throws(() => diagnose([], scene), /there is no report/);
});

Deno.test("fingerprint() ignores the time of a failure and depends on the operation", () => {
  const at = (ms: number, op: string) => {
    const message = `Timed out waiting ${ms}ms for recv operation to complete at 0x7f${ms}`;
    return fingerprint(diagnose([failureReport({ message })], { ...scene, ranks: 1 }).root, op);
  };
  strictEqual(at(6000, "train"), at(8000, "train"));
  ok(at(6000, "train") !== at(6000, "score"));
});
