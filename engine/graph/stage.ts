/**
 * A stage: the unit of recorded work, with a name, a version, typed input and output, limits and a
 * body.
 */
import type { z } from "zod";
import type {
  AttemptsMax,
  Context,
  ForkPolicy,
  Leaves,
  RecordingContext,
  ReplayPolicy,
  Stage,
} from "./context.ts";
import type { Cause } from "../errors.ts";
import type { Needs } from "./slots.ts";

export type { AttemptsMax, ForkPolicy, Leaves, ReplayPolicy, Stage } from "./context.ts";

/** `user_code` and `bad_data` would fail the same way again; the machine causes the others. */
const ATTEMPTS_DEFAULT: Record<Cause, number> = {
  timeout: 3,
  no_progress: 3,
  worker_lost: 3,
  out_of_memory: 3,
  infrastructure: 3,
  user_code: 1,
  bad_data: 1,
};

/** What a stage is declared with. */
export type StageOptions<In extends z.ZodType, Out extends z.ZodType> = {
  name: string;
  /** Raise when the output changes meaning: older records then do not replay. */
  version: number;
  input: In;
  output: Out;
  runs_on?: string;
  /**
   * Slots of worker groups that a task holds at once, for one that needs several: `{ cpu: 1,
   * gpu: 2 }`.
   */
  slots?: Needs;
  /** The phase of its graph: recorded, and reported to observers and faults. */
  phase?: string;
  /** Limit of one attempt. */
  timeout_ms?: number;
  /**
   * Limit between two signs of progress (`ctx.progressed()`, `ctx.emit({ progress })`) of one
   * attempt.
   */
  no_progress_ms?: number;
  attempts_max?: AttemptsMax;
  replay?: ReplayPolicy;
  /**
   * The body may start while the rows of its input, and its own intent, are still on their way to
   * the store, so consecutive stages share a commit. For bodies whose only effects are their result
   * and operations that wait for `ctx.durable()` themselves: records, steps, worker operations. If
   * a crash loses the rows, it loses the result too.
   */
  eager?: boolean;
  /**
   * Whether a recorded output says that something in it failed. If the run then failed because of
   * its code or data, a resume redoes such an output.
   */
  failed?: (output: z.output<Out>) => boolean;
  /**
   * If the files that it wrote are gone, a replay runs the body again. Its output must then have
   * the recorded identity, or the run fails.
   */
  leaves?: Leaves<z.output<Out>>;
  /** What a fork does with its record if the child would request something different. */
  fork?: ForkPolicy;
  /** Its body. A body that needs more from the engine declares `ctx: RecordingContext`. */
  run(input: z.output<In>, ctx: Context): Promise<z.input<Out>> | z.input<Out>;
};

/** Declares a stage. Nothing runs until an engine executes a graph that contains it. */
export function defineStage<In extends z.ZodType, Out extends z.ZodType>(
  options: StageOptions<In, Out>,
): Stage<z.input<In>, z.output<Out>> {
  const {
    run,
    runs_on = "engine",
    phase = "other",
    replay = "error",
    eager = false,
    failed,
    leaves,
    ...rest
  } = options;
  if (!/^[A-Za-z0-9_.-]+$/.test(options.name)) {
    throw new RangeError(
      `Cannot define stage '${options.name}' because its name is part of keys: use letters, ` +
        "digits, _ . -",
    );
  }
  if (options.slots && runs_on === "engine") {
    throw new RangeError(
      `Cannot define stage '${options.name}' with slots because it runs on the engine, ` +
        "where it may call stages that need slots",
    );
  }
  return {
    ...rest,
    runs_on,
    phase,
    replay,
    eager,
    failed: failed && ((output: unknown) => failed(output as z.output<Out>)),
    leaves: leaves as Leaves | undefined,
    // `async` turns a synchronous throw into a rejection like any other.
    async body(input: unknown, ctx: RecordingContext): Promise<unknown> {
      return await run(input as z.output<In>, ctx);
    },
  };
}

/** What a task of this stage reserves. */
export function slotsOf({ slots, runs_on }: Pick<Stage, "slots" | "runs_on">): Needs {
  return slots ?? { [runs_on]: 1 };
}

/** How many failures of this cause a stage may have before it is given up. */
export function attemptsFor(stage: Pick<Stage, "attempts_max">, cause: Cause): number {
  const attempts = stage.attempts_max;
  return (typeof attempts === "number" ? attempts : attempts?.[cause]) ?? ATTEMPTS_DEFAULT[cause];
}
