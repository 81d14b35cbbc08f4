/**
 * What a running engine reports to its observers. Events are not recorded and their tail may be
 * lost.
 */
import type { ErrorJson } from "./errors.ts";

/** What happens in a run, as it happens. Listeners only observe: they change nothing. */
export type EngineEvent = { run: string; at_ms: number } & EngineEventBody;

/** What happened, by `type`. */
export type EngineEventBody =
  | { type: "run_started"; epoch: number; resumed: boolean; name: string }
  | { type: "run_ended"; status: string }
  | {
    type: "stage_started";
    key: string;
    stage: string;
    runs_on: string;
    phase: string;
    attempt: number;
  }
  | {
    type: "stage_finished";
    key: string;
    stage: string;
    runs_on: string;
    phase: string;
    ms: number;
    output: unknown;
  }
  | {
    type: "stage_failed";
    key: string;
    stage: string;
    attempt: number;
    error: ErrorJson;
    next_ms: number | null;
  }
  | {
    type: "round_closed";
    loop: string;
    round: number;
    times: number;
    carried: Record<string, unknown>;
    tally: Record<string, number>;
    total: Record<string, number>;
  }
  | { type: "metrics"; key: string; metrics: Record<string, number> }
  | { type: "log"; key: string; text: string }
  | { type: "progress"; key: string; done: number; total?: number; phase?: string }
  | { type: "note"; kind: string; key: string; value: unknown }
  | { type: "late_result"; key: string; attempt: number; count: number };

/** Receives the events of runs. It must not throw. */
export type EventListener = (event: EngineEvent) => void;
