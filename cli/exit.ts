import type { EngineError } from "../engine/mod.ts";

/**
 * Exit codes of the contract: done; bad input, nothing started; failed or cancelled; interrupted,
 * resumable.
 */
export const EXIT = { done: 0, bad_input: 2, failed: 3, interrupted: 130 } as const;

const BAD_INPUT = new Set(["invalid_input", "run_owned", "bad_data", "replay_drift"]);

/**
 * Whether a thrown error says that nothing was started. The error that failed a run is not thrown:
 * it is the run's outcome.
 */
export function isBadInput(error: EngineError): boolean {
  return BAD_INPUT.has(error.code);
}
