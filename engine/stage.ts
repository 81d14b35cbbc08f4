/** A stage: the unit of recorded work, with a name, a version, typed input and output, limits and a body. */
import type { z } from "zod";
import type { Context } from "./context.ts";
import type { Cause } from "./errors.ts";
import type { Needs } from "./slots.ts";

/** What a stage is part of; fault tests draw kill points by it. */
export type Phase = "generation" | "publication" | "training" | "checkpoint" | "other";

/** `error`: stop and show the difference. `rerun`: drop what was recorded, run again. `accept`: keep what was recorded. */
export type ReplayPolicy = "error" | "rerun" | "accept";

/** Failures allowed until a stage is given up: one number for every cause, or by cause (the rest keep their default). */
export type AttemptsMax = number | Partial<Record<Cause, number>>;

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

/** Files that a stage leaves beside its record, and what of them must come out the same when they are made again. */
export type Leaves<O = unknown> = {
  /** Whether they are there. Asked at every replay, so it looks at names and sizes; what they hold is checked where they are read. */
  areThere(output: O, ctx: Pick<Context, "resource">): Promise<boolean>;
  identity(output: O): string;
};

/** A stage as graphs and the executor see it. I is what may be wired into it, O what comes out. */
export interface Stage<I = unknown, O = unknown> {
  /** Names it in the journal, unique in its graph. */
  readonly name: string;
  /** Raised when the output changes meaning: older records then do not replay. */
  readonly version: number;
  /** What its body takes; checked before each attempt. */
  readonly input: z.ZodType;
  /** What its body returns; checked before it is recorded. */
  readonly output: z.ZodType;
  /** The worker group that its tasks run on, or `engine`. */
  readonly runs_on: string;
  /** Slots that a task holds, all or none; one of `runs_on` by default. */
  readonly slots?: Needs;
  /** What it is part of; fault tests draw kill points by it. */
  readonly phase: Phase;
  /** Limit of one attempt. */
  readonly timeout_ms?: number;
  /** Limit between two signs of progress of one attempt. */
  readonly no_progress_ms?: number;
  /** Failures allowed until it is given up. */
  readonly attempts_max?: AttemptsMax;
  /** What a replay does where the recorded input is another. */
  readonly replay: ReplayPolicy;
  /** Its body may start before what it was given is durable. */
  readonly eager: boolean;
  /** Whether a recorded output says that something in it failed: then a resume may make it again. */
  failed?(output: unknown): boolean;
  /** The files that it leaves beside its output. */
  readonly leaves?: Leaves;
  /** Does the work. May run again after a crash: `Context.idempotency_key` is the same then. */
  body(input: unknown, ctx: Context): Promise<unknown>;
  /** Never set: carries the types. */
  readonly types?: { input: I; output: O };
}

/** What a stage is declared with. */
export type StageOptions<In extends z.ZodType, Out extends z.ZodType> = {
  name: string;
  /** Raise when the output changes meaning: older records then do not replay. */
  version: number;
  input: In;
  output: Out;
  runs_on?: string;
  /** Slots of worker groups that a task holds at once, for one that needs several: `{ trainer: 1, sampler: 2 }`. */
  slots?: Needs;
  phase?: Phase;
  /** Limit of one attempt. */
  timeout_ms?: number;
  /** Limit between two signs of progress (`ctx.progressed()`, `ctx.emit({ progress })`) of one attempt. */
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
  /** Where the files that it left are gone, a replay runs the body again. Its output then has the recorded identity, or the run fails. */
  leaves?: Leaves<z.output<Out>>;
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
      `Cannot define stage '${options.name}' as its name is part of keys: use letters, digits, _ . -`,
    );
  }
  if (options.slots && runs_on === "engine") {
    throw new RangeError(
      `Cannot define stage '${options.name}' with slots as it runs on the engine, where it may call stages that need them`,
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
    async body(input: unknown, ctx: Context): Promise<unknown> {
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
