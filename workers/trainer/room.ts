import { type EngineError, OutOfMemoryError } from "../../engine/mod.ts";
import { type CallOptions, callOptions } from "../call.ts";
import type { Caller } from "../operator.ts";
import { microBatchTokensMax, type Replan, roundOf, type TrainerBlock } from "./replan.ts";

/** A rank's last report before it runs out of memory. Tokens include padding. */
type Cut = { longest_tokens: number; micro_batch_tokens: number };

/**
 * The device had no room for an operation's micro-batches. `cut`: their size, if a rank could still
 * report it.
 */
class NoRoom extends Error {
  constructor(readonly error: EngineError, readonly cut: Cut | null) {
    super(error.message);
  }
}

/** Runs an operation that is cut into micro-batches. @throws {NoRoom} If smaller ones may fit. */
export async function withinRoom<T>(
  caller: CallOptions,
  operate: (watched: CallOptions) => Promise<T>,
): Promise<T> {
  let cut: Cut | null = null;
  const watched: CallOptions = {
    ...callOptions(caller),
    onProgress: (progress) => {
      const { longest_tokens, micro_batch_tokens } = progress.metrics;
      if (longest_tokens && micro_batch_tokens) cut = { longest_tokens, micro_batch_tokens };
      caller.onProgress?.(progress);
    },
  };
  try {
    return await operate(watched);
  } catch (error) {
    if (error instanceof OutOfMemoryError && onDevice(error)) throw new NoRoom(error, cut);
    throw error;
  }
}

/** Not the host's memory: there the kernel kills the process, or Python raises a separate error. */
function onDevice({ facts }: OutOfMemoryError): boolean {
  return !facts.signal && facts.exception !== "MemoryError";
}

type Fitting = {
  configured: number;
  /** The run's replans so far. A new one is appended. */
  replans: Replan[];
  block: TrainerBlock;
  /** recovery.allow_replan. */
  allowed: boolean;
  caller: Caller;
};

/**
 * Runs `work` with the current size of micro-batches. If the device has no room for them, records
 * a replan to smaller ones and tries again with those.
 * @throws {OutOfMemoryError} If smaller ones are not allowed or would not help.
 */
export async function fitting<T>(
  work: (microBatchTokensMax: number) => Promise<T>,
  { configured, replans, block, allowed, caller }: Fitting,
): Promise<T> {
  for (;;) {
    const from = microBatchTokensMax(configured, replans, block);
    try {
      return await work(from);
    } catch (error) {
      if (!(error instanceof NoRoom)) throw error;
      const replan = smallerCut(error, { from, key: caller.key, allowed, block });
      await caller.record("note/replan", caller.key, replan);
      replans.push(replan);
      caller.emit?.({
        log: `no room on the device: ${replan.field} is ${replan.to} from here on, previously ` +
          `${from}`,
      });
    }
  }
}

type Now = { from: number; key: string; allowed: boolean; block: TrainerBlock };

/**
 * The replan to half the micro-batch. @throws {OutOfMemoryError} If it is not allowed, or one
 * sequence alone does not fit.
 */
function smallerCut({ error, cut }: NoRoom, { from, key, allowed, block }: Now): Replan {
  const largest = Math.min(from, cut?.micro_batch_tokens ?? from);
  const to = Math.max(Math.floor(largest / 2), cut?.longest_tokens ?? 1);
  const stop = (why: string) => {
    const text =
      `Cannot continue with '${key}' because the device has no room for its micro-batches: ` +
      `${why}\n${error.message}`;
    return new OutOfMemoryError(text, { ...error.facts, from, cut }, {
      cause: error,
      retryable: false,
    });
  };
  if (to >= largest) {
    throw stop(
      `one sequence of ${largest} tokens does not fit, and sequences are never truncated. Use ` +
        `${block}.gradient_checkpointing, ` +
        "engine deepspeed with a higher zero and more ranks, or shorter sequences " +
        "(sampler.tokens_max)",
    );
  }
  if (!allowed) {
    const run = String(error.facts.run ?? "RUN");
    throw stop(
      `${block}.micro_batch_tokens_max is ${from} and recovery.allow_replan is false. ` +
        "Smaller micro-batches give the same gradient up to rounding:" +
        `\n  next: deno task rl resume ${run} ${block}.micro_batch_tokens_max=${to}`,
    );
  }
  return {
    round: roundOf(key),
    cause: "out_of_memory",
    field: `${block}.micro_batch_tokens_max`,
    from,
    to,
  };
}
