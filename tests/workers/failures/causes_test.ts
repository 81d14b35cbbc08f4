import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { CAUSES } from "../../../engine/mod.ts";
import { type FailureKind, POLICY, SIGNS, TEXTLESS } from "../../../workers/failures/causes.ts";
import { COMMUNICATION_CASES } from "../failure_cases/communication.ts";
import { PROCESS_CASES } from "../failure_cases/process.ts";

Deno.test("every sign is in the catalogue's cases, and every kind has a sign", () => {
  const seen = new Set(
    [...COMMUNICATION_CASES, ...PROCESS_CASES].map(([, , [observed]]) => observed),
  );
  // Tested below, and in real_agent_test.
  const byAgent = ["told_cancelled", "told_timeout", "silent_rank"];
  const wanted = [...SIGNS.map(({ name }) => name), ...Object.keys(TEXTLESS)];
  const rare = [
    "nvlink",
    "host_allocation",
    "collective_mismatch",
    "nccl_cuda_error",
    "cuda_error",
  ];
  deepStrictEqual(
    wanted.filter((name) => !seen.has(name) && ![...byAgent, ...rare].includes(name)),
    [],
  );
  const kinds = new Set([...SIGNS.map(({ kind }) => kind), ...Object.values(TEXTLESS)]);
  deepStrictEqual(Object.keys(POLICY).filter((kind) => !kinds.has(kind as FailureKind)), []);
});

Deno.test("POLICY gives every kind one of the engine's causes; what repeats never restarts", () => {
  for (const [kind, { cause, action }] of Object.entries(POLICY)) {
    ok(CAUSES.includes(cause), kind);
    if (cause === "user_code" || cause === "bad_data") strictEqual(action, "stop", kind);
  }
  deepStrictEqual(
    Object.entries(POLICY).filter(([, { counted }]) => !counted).map(([kind]) => kind),
    [
      "preempted",
      "operator_kill",
    ],
  );
});
