/** What a caller passes with an operation, and what it receives. */

export type Progress = {
  rank: number;
  phase: string;
  done: number;
  total: number | null;
  metrics: Record<string, number>;
};

/** How one operation is called: its limits and its progress callback. */
export type CallOptions = {
  /** The journal key and attempt of the work this operation belongs to. */
  key: string;
  attempt: number;
  /** Aborting it cancels the operation and rejects with its reason. */
  signal?: AbortSignal;
  /**
   * Settles when the intent of this work and its inputs are durable. Nothing is sent to a rank
   * before that.
   */
  durable?: () => Promise<void>;
  /** Counts from when the ranks receive the operation. After it the group is replaced. */
  timeout_ms?: number;
  /** The longest time without progress of any rank. After it the group is replaced. */
  no_progress_ms?: number;
  onProgress?: (progress: Progress) => void;
  /**
   * Settles when the end of this work is durable. Until then the answer stays with the agent, so
   * that another engine gets it without doing the work again. Omitted: nobody will request it
   * again.
   */
  recorded?: () => Promise<void>;
  /** Work of earlier engines for this key counts from this attempt on. Default: `attempt`. */
  since_attempt?: number;
};

/**
 * A caller's options as an object to spread: a context has them on its prototype, and spreading it
 * would lose them.
 */
export function callOptions(caller: CallOptions): CallOptions {
  const { key, attempt, since_attempt, signal, timeout_ms, no_progress_ms, onProgress } = caller;
  const durable = caller.durable && (() => caller.durable!());
  const recorded = caller.recorded && (() => caller.recorded!());
  return {
    key,
    attempt,
    since_attempt,
    signal,
    timeout_ms,
    no_progress_ms,
    onProgress,
    durable,
    recorded,
  };
}

/** `outputs` in rank order, `blobs` of rank 0, and the generation that did the work. */
export type CallResult = { outputs: unknown[]; blobs: Uint8Array[]; generation: number };
