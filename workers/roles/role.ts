import { z } from "zod";
import type { ModelHead } from "../../data/mod.ts";
import { type EnvironmentKind, environmentKind } from "../environments/environments.ts";
import { type GpuNeeds, onGpu } from "../fleet/gpus.ts";
import type { ModelOpening } from "../trainer/model_opening.ts";
import type { SamplerConfig } from "../sampler_config.ts";
import type { TrainerConfig } from "../trainer/trainer_config.ts";
import type { ValueModelConfig } from "../trainer/value_model_config.ts";
import type { Timed, WorkersConfig } from "../workers_config.ts";

/** The phases of a run that fault tests distinguish. */
export type Phase = "generation" | "publication" | "training" | "checkpoint" | "other";

/**
 * The answer of a worker that does not hold the version an operation names. It did nothing, and
 * holds this version or none.
 */
export const NotResident = z.strictObject({ not_resident: z.string().nullable() });
export type NotResident = z.infer<typeof NotResident>;

/** One operation: its arguments, and what every rank answers. */
export type Operation = {
  args: z.ZodObject;
  /**
   * With `NotResident`: the operation names a version, and a worker that does not hold it says so.
   */
  output: z.ZodType;
  /** The phase of the run meanwhile. Omitted: none that fault tests distinguish. */
  phase?: Phase;
  /** Which time limit of the configuration applies. Omitted: none but that on silence. */
  timed?: Timed;
};
/** The operations of a role, by name. */
export type Operations = Record<string, Operation>;

/** The parts of a configuration that decide which processes a run has. */
export type WorkerBlocks = {
  seed: number;
  workers: WorkersConfig;
  trainer: Omit<TrainerConfig, "optimizer">;
  /** How the policy's model is opened. Absent: as transformers opens one by default. */
  model?: ModelOpening;
  /** The head of the policy's model, if it is not a vocabulary. */
  head?: ModelHead | null;
  value_model?: ValueModelConfig | null;
  sampler: SamplerConfig;
  reward_processes: number;
  allow_replan: boolean;
  /** The blocks of other roles, by the role's name. */
  others?: Record<string, unknown>;
};

/** One group of processes of a role, before it has GPUs and an interpreter. */
export type PlannedGroup<Spec = Record<string, unknown>> = {
  group: string;
  ranks: number;
  spec: Spec;
  environment: EnvironmentKind;
  /** The user's own interpreter; null: the managed environment's. */
  python: string | null;
  env?: Record<string, string>;
  /** null: the group does not mention GPUs, and sees what the engine sees. */
  gpus: GpuNeeds | null;
};

/** Asks the worker that is to be rebuilt. */
type AskWorker<Ops extends Operations> = <Op extends keyof Ops & string>(
  op: Op,
  args: z.input<Ops[Op]["args"]>,
) => Promise<Exclude<z.output<Ops[Op]["output"]>, NotResident>>;

/**
 * How a worker of the role is as it was after it was replaced, or after it did something else
 * meanwhile:
 * - `by_start`: its start is enough, since all that it holds is its specification;
 * - a function: it asks the worker for what the refused operation's arguments name, and the
 *   operation is then asked again;
 * - `from_record`: the same by what the run has recorded. The class that stages call looks that up
 *   and calls `rebuild`.
 */
type Rebuilt<Ops extends Operations, Recorded, Result> =
  | "by_start"
  | { bring(ask: AskWorker<Ops>, args: Record<string, unknown>): Promise<unknown> }["bring"]
  | { from_record(ask: AskWorker<Ops>, recorded: Recorded): Promise<Result> };

/** Declares a kind of worker process. The engine knows nothing else about it. */
type Declaration<
  Name extends string,
  Ops extends Operations,
  Spec extends z.ZodObject,
  Block extends z.ZodType,
  Recorded,
  Result,
> = {
  readonly name: Name;
  /** Python module with the role's `Worker` class. */
  readonly module: string;
  /** What its ranks are started with. */
  readonly spec: Spec;
  readonly operations: Ops;
  readonly rebuilt: Rebuilt<NoInfer<Ops>, Recorded, Result>;
  /**
   * Objects inside of the specification and the operations, by the names that Python gives their
   * types.
   */
  readonly parts?: Record<string, z.ZodType>;
  /** Artifacts that its operations read, each a union of parts. */
  readonly reads?: Record<string, z.ZodUnion>;
  /** Omitted: with the run. */
  readonly starts?: "with_the_run" | "on_first_use";
  /**
   * The schema of the configuration's block with the role's name. null or absent: it needs only the
   * blocks of every run.
   */
  readonly block?: Block | null;
  /**
   * The groups that a run has. `block`: the role's block; a configuration without it has no group of
   * the role.
   */
  groups(
    blocks: WorkerBlocks,
    block: z.output<NoInfer<Block>>,
  ): PlannedGroup<z.output<NoInfer<Spec>>>[];
};

/** A kind of worker process. */
type Role<
  Name extends string,
  Ops extends Operations,
  Spec extends z.ZodObject,
  Block extends z.ZodType,
  Recorded,
  Result,
> = Required<Declaration<Name, Ops, Spec, Block, Recorded, Result>>;

/** Any role. */
// deno-lint-ignore no-explicit-any
export type AnyRole = Role<string, any, any, any, any, any>;

/**
 * Declares a role. It contains everything that the engine needs to know about the role; `ROLES`
 * lists all roles.
 *
 * @throws {TypeError} If `rebuilt` does not match the operations.
 */
export function defineRole<
  Name extends string,
  Ops extends Operations,
  Spec extends z.ZodObject,
  Block extends z.ZodType = z.ZodNever,
  Recorded = never,
  Result = never,
>(
  declaration: Declaration<Name, Ops, Spec, Block, Recorded, Result>,
): Role<Name, Ops, Spec, Block, Recorded, Result> {
  const { name, operations, rebuilt } = declaration;
  const refuses = Object.keys(operations).find((op) =>
    operations[op]!.output.safeParse({ not_resident: null }).success
  );
  if (rebuilt === "by_start" && refuses !== undefined) {
    throw new TypeError(
      `Cannot declare role '${name}' because '${refuses}' may answer not_resident and the ` +
        "role is rebuilt by_start: " +
        "say how a worker gets what the operation needs",
    );
  }
  if (rebuilt !== "by_start" && refuses === undefined) {
    throw new TypeError(
      `Cannot declare role '${name}' because nothing requests its rebuilding: give an ` +
        "operation's output NotResident, " +
        "or say by_start",
    );
  }
  return { parts: {}, reads: {}, starts: "with_the_run", block: null, ...declaration };
}

/**
 * The settings of a block that its processes receive: those of `schema`. The block's declaration
 * lists them, so a new setting there reaches the worker.
 */
export function fieldsOf<Shape extends z.ZodRawShape>(
  schema: z.ZodObject<Shape>,
  block: z.infer<z.ZodObject<Shape>>,
): z.infer<z.ZodObject<Shape>> {
  return schema.strip().parse(block);
}

/** The environment that a block's processes run in. */
export function environmentOf(
  block: {
    engine: TrainerConfig["engine"] | SamplerConfig["engine"];
    device: TrainerConfig["device"];
  },
): EnvironmentKind {
  return environmentKind(block.engine, onGpu(block.device));
}

/**
 * Waiting threads must not spin, because workers share their cores with other processes. With two
 * threads on two busy cores, spinning made vLLM up to six times slower.
 */
export function threadsEnv(threads: number): Record<string, string> {
  const count = String(threads);
  return {
    OMP_NUM_THREADS: count,
    MKL_NUM_THREADS: count,
    OMP_WAIT_POLICY: "PASSIVE",
    TOKENIZERS_PARALLELISM: "false",
  };
}
