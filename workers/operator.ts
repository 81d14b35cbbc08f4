import type { CallOptions, CallResult } from "./call.ts";
import type { Loss } from "./failures/recovery.ts";

/**
 * A worker group from the point of view of policy code: named operations, one at a time, answered
 * by every rank.
 */
export interface Operator {
  call(op: string, args: unknown, options: CallOptions): Promise<CallResult>;
  /** Whether `call` would continue, or receive, what an earlier engine requested. */
  holds?(op: string, args: unknown, options: CallOptions): Promise<boolean>;
  /** The oldest loss since the last time it was asked; null if there was none. */
  takeLoss?(): Loss | null;
  /**
   * The same job on a different number of ranks, next to this one, until `end`. Rejects if they
   * cannot be started.
   */
  withRanks?(ranks: number, options: CallOptions): Promise<Operator & { end(): Promise<void> }>;
}

/** The caller's identity, and where it records what happened. A stage context fits. */
export type Caller = CallOptions & {
  record(kind: "recovery" | `note/${string}`, key: string, value: unknown): Promise<void>;
  emit?(emission: { log?: string }): void;
};
