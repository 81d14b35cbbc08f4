import type { Cause } from "../../../engine/mod.ts";
import type { FailureKind } from "../../../workers/failures/causes.ts";
import type { Evidence } from "../../../workers/failures/diagnosis.ts";

/** What was seen, and what it must be read as: sign, kind, role, the engine's cause. */
export type FailureCase = [
  name: string,
  seen: Evidence,
  read: [observed: string, kind: FailureKind, role: string, cause: Cause],
];

export const evidence = (more: Partial<Evidence>): Evidence => ({
  cause: "other",
  exception: "RuntimeError",
  message: "",
  exit_code: null,
  signal: null,
  kernel: [],
  oom_kills: null,
  log: [],
  during: "operation",
  ...more,
});
export const died = (signal: string, more: Partial<Evidence> = {}) =>
  evidence({
    cause: "signal",
    exception: null,
    message: `The process was killed by ${signal}`,
    signal,
    ...more,
  });
export const raised = (exception: string, message: string, more: Partial<Evidence> = {}) =>
  evidence({ exception, message, ...more });
