/**
 * A stage: the unit of recorded work, with a name, a version, typed input and output, limits and a
 * body.
 */
import type { z } from "zod";
import type { AttemptsMax, Context, Leaves, RecordingContext, ReplayPolicy, Stage } from "./context.ts";
import type { Cause } from "./errors.ts";
import type { Needs } from "./slots.ts";

export type { AttemptsMax, Leaves, ReplayPolicy, Stage } from "./context.ts";

/** `user_code` and `bad_data` would fail the same way again; the others come from the machine. */
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
  /** What it is part of, in the words of its graph: recorded, and told to observers and faults. */
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
   * The body may start while the rows of what it was given, and its own intent, are still on their way to the store, so
   * that stages which follow each other share a commit. For bodies without effect but their result and what waits for
   * `ctx.durable()` by itself: records, steps, worker operations. If the rows are lost in a crash, so is its result.
   */
  eager?: boolean;
  /**
   * Whether a recorded output says that something in it failed. Where the run then failed of what its code or data did, a
   * resume makes such an output again.
   */
  failed?: (output: z.output<Out>) => boolean;
  /**
   * Where the files that it left are gone, a replay runs the body again. Its output then has the
   * recorded identity, or the run fails.
   */
  leaves?: Leaves<z.output<Out>>;
  /** Its body. One that needs more of the engine writes `ctx: RecordingContext`. */
  run(input: z.output<In>, ctx: Context): Promise<z.input<Out>> | z.input<Out>;
};

/** Declares a stage. Nothing runs until an engine executes a graph that holds it. */
export function defineStage<In extends z.ZodType, Out extends z.ZodType>(
  options: StageOptions<In, Out>,
): Stage<z.input<In>, z.output<Out>> {
  const { run, runs_on = "engine", phase = "other", replay = "error", eager = false, failed, leaves, ...rest } =
    options;
  if (!/^[A-Za-z0-9_.-]+$/.test(options.name)) {
    throw new RangeError(
      `Cannot define stage '${options.name}' because its name is part of keys: use letters, digits, _ . -`,
    );
  }
  if (options.slots && runs_on === "engine") {
    throw new RangeError(
      `Cannot define stage '${options.name}' with slots because it runs on the engine, where it may call stages that need them`,
    );
  }
  return {
    ...rest,
    runs_on,
    phase,
    replay,
    eager,
    ...(failed && { failed: (output: unknown) => failed(output as z.output<Out>) }),
    ...(leaves && { leaves: leaves as Leaves }),
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
  const own = stage.attempts_max;
  return (typeof own === "number" ? own : own?.[cause]) ?? ATTEMPTS_DEFAULT[cause];
}
