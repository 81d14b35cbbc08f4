import { type EngineError, OutOfMemoryError } from "../engine/mod.ts";
import { type CallOptions, callOptions } from "./call.ts";
import { type Replan, roundOf, type TrainerBlock } from "./replan.ts";

/** What a rank says, as the last thing before it fails for want of memory. Tokens with padding. */
type Cut = { longest_tokens: number; micro_batch_tokens: number };

/**
 * The device had no room for an operation's micro-batches. `cut`: how they were cut, if a rank
 * could still say it.
 */
export class NoRoom extends Error {
  constructor(readonly error: EngineError, readonly cut: Cut | null) {
    super(error.message);
  }
}

/** Runs an operation that is cut into micro-batches. @throws {NoRoom} If smaller ones may fit. */
export async function askedRoom<T>(caller: CallOptions, operate: (watched: CallOptions) => Promise<T>): Promise<T> {
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

/**
 * The host's memory is another matter: its kernel kills, and Python's allocator has a separate
 * error.
 */
function onDevice({ facts }: OutOfMemoryError): boolean {
  return !facts.signal && facts.exception !== "MemoryError";
}

type Now = { from: number; key: string; allowed: boolean; block: TrainerBlock };

/**
 * The replan to half the micro-batch. @throws {OutOfMemoryError} If it is not allowed, or one
 * sequence alone does not fit.
 */
export function smallerCut({ error, cut }: NoRoom, { from, key, allowed, block }: Now): Replan {
  const largest = Math.min(from, cut?.micro_batch_tokens ?? from);
  const to = Math.max(Math.floor(largest / 2), cut?.longest_tokens ?? 1);
  const stop = (why: string) => {
    const text =
      `Cannot continue with '${key}' because the device has no room for its micro-batches: ${why}\n${error.message}`;
    return new OutOfMemoryError(text, { ...error.facts, from, cut }, { cause: error, retryable: false });
  };
  if (to >= largest) {
    throw stop(
      `one sequence of ${largest} tokens does not fit, and none is cut. Use ${block}.gradient_checkpointing, ` +
        "engine deepspeed with a higher zero and more ranks, or shorter sequences (sampler.tokens_max)",
    );
  }
  if (!allowed) {
    const run = String(error.facts.run ?? "RUN");
    throw stop(
      `${block}.micro_batch_tokens_max is ${from} and recovery.allow_replan is false. Smaller ones give the same gradient to ` +
        `rounding:\n  next: deno task rl resume ${run} ${block}.micro_batch_tokens_max=${to}`,
    );
  }
  return { round: roundOf(key), cause: "out_of_memory", field: `${block}.micro_batch_tokens_max`, from, to };
}
