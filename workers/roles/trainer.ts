import { z } from "zod";
import {
  AlgorithmDescription,
  ArtifactRef,
  Batch,
  Chat,
  Column,
  GroupRef,
  Message,
  ModelHead,
  Numerics,
  Optimizer,
  PLAIN_NUMERICS,
  PreferencePair,
  RatioBounds,
  Row,
  Schedule,
  ScoredColumn,
  StepCut,
  UnpairedCompletion,
} from "../../data/mod.ts";
import { onGpu } from "../fleet/gpus.ts";
import { checkSameSteps } from "./check_same_steps.ts";
import {
  Checkpoint,
  FileEntry,
  Publication,
  PublicationBase,
  PublicationProbe,
  TensorEntry,
} from "../trainer/model_files.ts";
import { ModelOpening, OPENING_SPEC } from "../trainer/model_opening.ts";
import { Lora, Offload, type TrainerConfig, TrainerProcess } from "../trainer/trainer_config.ts";
import { valueTrainer } from "../trainer/value_model_config.ts";
import {
  defineRole,
  environmentOf,
  fieldsOf,
  NotResident,
  type Operations,
  type PlannedGroup,
  threadsEnv,
} from "./role.ts";

const [SequenceColumn, TokenColumn] = Column.options;
const [TrajectoryBatch, SupervisedBatch, PreferenceBatch, UnpairedBatch] = Batch.options;

/** What the ranks of a trainer are started with. */
const TrainerSpec = z.strictObject({
  ...TrainerProcess.shape,
  ...OPENING_SPEC,
  seed: z.int(),
  head: ModelHead.nullable(),
});
type TrainerSpec = z.infer<typeof TrainerSpec>;

/** Why no rank took a step, and where the problem came from, if known. */
const SkippedStep = z.strictObject({
  cause: z.enum(["loss", "grad_norm"]).describe("Which value was not finite."),
  node: z.string().nullable().describe(
    "Of the loss's expression; of a norm the input with the largest gradient.",
  ),
  sequence: z.int().nullable().describe("Its index in the step."),
  token: z.int().nullable(),
});
type SkippedStep = z.infer<typeof SkippedStep>;

export const StepRecord = z.strictObject({
  loss: z.number().nullable().describe("null: not finite."),
  grad_norm: z.number().nullable().describe("null: not finite."),
  skipped: SkippedStep.optional().describe("Whether it was left out of a step that ran."),
  lr: z.number(),
  loss_scale: z.number().optional().describe("In float16: what the loss was multiplied by."),
  n_tokens: z.number(),
  n_sequences: z.number(),
  micro_batches: z.int(),
  metrics: z.record(z.string(), z.number()),
  tokens_sha256: z.string().optional().describe(
    "Of the tokens that the batch's rows were rendered to; absent: the batch has tokens itself.",
  ),
});
export type StepRecord = z.infer<typeof StepRecord>;

const /** @internal */ evaluatedBatchSchema = z.strictObject({
  loss: z.number(),
  n_tokens: z.number(),
  n_sequences: z.number(),
  micro_batches: z.int(),
  metrics: z.record(z.string(), z.number()),
});
/** The result of a loss on a batch. */
export type EvaluatedBatch = z.infer<typeof evaluatedBatchSchema>;
/** Schema of {@linkcode EvaluatedBatch}. */
export const EvaluatedBatch: typeof evaluatedBatchSchema = evaluatedBatchSchema;

const ModelDigest = z.string().nullable().describe(
  "Recorded digest of the directory's weights: weights with a different digest are " +
    "rejected. null: unknown.",
);

/** A row of a request, and why it cannot be used. */
const RefusedRow = z.strictObject({ row: z.int(), why: z.string() });
/** @internal */
export type RefusedRow = z.infer<typeof RefusedRow>;

const operations = {
  /** Creates a small randomly initialised model and its tokenizer (quickstart, tests). */
  create_model: {
    args: z.strictObject({ recipe: z.string(), seed: z.int(), dir: z.string() }),
    output: z.strictObject({ dir: z.string(), digest: z.string() }),
  },
  /** Digest of a model directory's weights, after checking that it is one. */
  inspect_model: {
    args: z.strictObject({ dir: z.string() }),
    output: z.strictObject({ digest: z.string(), parameters: z.int(), architecture: z.string() }),
  },
  /**
   * Tokens of rows under a model's tokenizer. Needs no version. Blob 0: int32 [N, 2], of the prompt
   * and of the longest sequence.
   */
  measure_rows: {
    args: z.strictObject({
      model_path: z.string(),
      use: z.enum(["prompt", "completion", "preference"]).describe(
        "What rows contain besides a prompt. preference: a completion, and a second one if " +
          "`rejected` is there.",
      ),
      rows: ArtifactRef.describe("JSON: a list of rows."),
      chat: Chat.nullable().describe(
        "How chats are rendered; null: turns end with the end-of-sequence token.",
      ),
    }),
    output: z.strictObject({
      rows: z.int(),
      model_tokens_max: z.int().nullable().describe(
        "The model's positions; null: its configuration does not say.",
      ),
      refused: RefusedRow.optional().describe(
        "The first row that the model's template or tokenizer refuses; then no row is measured.",
      ),
    }),
  },
  /** Tries everything of an algorithm's file on synthetic data. Needs no model. */
  open_algorithm: {
    args: z.strictObject({ algorithm: ArtifactRef.describe("JSON of a PythonSource.") }),
    output: AlgorithmDescription,
  },
  /**
   * Credit of a round by an algorithm's file. Needs no model. Blob 0: JSON of an AssignedCredit.
   */
  credit: {
    args: z.strictObject({
      algorithm: ArtifactRef.describe("JSON of a PythonSource."),
      round: ArtifactRef.describe("JSON of the round as credit sees it."),
    }),
    output: z.strictObject({ sequences: z.int() }),
  },
  load: {
    args: z.strictObject({
      version: z.string(),
      model_path: z.string(),
      optimizer: Optimizer,
      checkpoint: Checkpoint.nullable().describe(
        "null: start from the model directory, with fresh optimizer state.",
      ),
      model_digest: ModelDigest,
    }),
    output: z.strictObject({ version: z.string(), numerics: Numerics }),
    timed: "load",
  },
  train: {
    args: z.strictObject({
      from: z.string(),
      to: z.string(),
      batch: ArtifactRef.describe("JSON of a Batch."),
      loss: ArtifactRef.describe("JSON of a RecordedLoss."),
      optimizer: Optimizer.describe(
        "The optimizer of these steps: a fork may train with settings different from its prefix's.",
      ),
      micro_batch_tokens_max: z.int().positive(),
      ...StepCut.shape,
      mismatch: RatioBounds.nullable().describe(
        "Range for measuring how far the policy is from the sampling policy. null: nothing " +
          "is measured, as in a redo.",
      ),
      non_finite_max: z.int().positive().nullable().describe(
        "This many consecutive skipped steps fail. null: no limit, as in a redo.",
      ),
    }),
    output: z.union([
      NotResident,
      z.strictObject({ version: z.string(), steps: z.array(StepRecord) }),
    ]),
    phase: "training",
    timed: "train",
  },
  /**
   * The scores of a batch's tokens by the resident version or the reference model. Blob i = column
   * i.
   */
  score: {
    args: z.strictObject({
      version: z.string(),
      batch: ArtifactRef,
      columns: z.array(ScoredColumn).min(1),
      reference_path: z.string().nullable().describe(
        "null: the model itself with its adapter switched off.",
      ),
      reference_digest: ModelDigest,
      reference_offload: z.boolean().describe("Keep the reference on the CPU between uses."),
      micro_batch_tokens_max: z.int().positive(),
      ...StepCut.shape,
    }),
    output: z.union([NotResident, z.strictObject({ columns: z.array(z.string()) })]),
    phase: "training",
    timed: "score",
  },
  /** The loss of a batch under the resident version, and its metrics: a step that is not taken. */
  evaluate: {
    args: z.strictObject({
      version: z.string(),
      batch: ArtifactRef,
      loss: ArtifactRef,
      micro_batch_tokens_max: z.int().positive(),
      ...StepCut.shape,
    }),
    output: z.union([NotResident, EvaluatedBatch]),
    phase: "training",
    timed: "score",
  },
  publish: {
    args: z.strictObject({
      version: z.string(),
      dir: z.string(),
      form: z.enum(["merged", "adapter"]).nullable().describe(
        "Of a policy trained by an adapter; null: as configured.",
      ),
      average: z.boolean().describe("The moving average of the weights in their place."),
    }),
    output: z.union([NotResident, Publication]),
    phase: "publication",
    timed: "publish",
  },
  /** Every rank answers its own files; the engine commits the union. */
  save: {
    args: z.strictObject({ version: z.string(), dir: z.string() }),
    output: z.union([NotResident, Checkpoint]),
    phase: "checkpoint",
    timed: "save",
  },
} satisfies Operations;

/**
 * What distinguishes one trainer's group from another's. The policy's group is `trainer`, and its
 * head is a vocabulary. `block`: the configuration's block.
 */
type TrainerGroupOptions = {
  seed: number;
  group?: string;
  head?: ModelHead | null;
  block?: string;
  model?: ModelOpening;
};

/** A trainer's group. Its spec is complete: no default of the worker affects the numerics. */
export function trainerGroup(
  config: Omit<TrainerConfig, "optimizer">,
  { seed, group = "trainer", head = null, block = "trainer", model }: TrainerGroupOptions,
): PlannedGroup<TrainerSpec> {
  // A value model's rows are padded and its head is small, so all of it is trained.
  const settings = head === "value" ? { ...config, ...PLAIN_NUMERICS } : config;
  const { engine, threads, device, ranks, devices, python } = settings;
  const each = {
    reason: `${block}.ranks is ${ranks}`,
    why: "NCCL needs one for each rank",
    fix: `Lower ${block}.ranks`,
  };
  return {
    group,
    ranks,
    python,
    environment: environmentOf({ engine, device }),
    spec: { ...fieldsOf(TrainerProcess, settings), ...ModelOpening.parse(model ?? {}), seed, head },
    env: { ...threadsEnv(threads), ...(onGpu(device) ? {} : { DS_ACCELERATOR: "cpu" }) },
    gpus: { block, device, devices, count: ranks, each },
  };
}

/** The record of a version: what is loaded, if anything, and the batches that are redone then. */
type TrainerRecord = {
  load: z.input<typeof operations.load.args> | null;
  redo: { args: z.input<typeof operations.train.args>; recorded: StepRecord[] }[];
};

/** The role of workers that train the policy and, if the algorithm has one, the value model. */
export const trainerRole = defineRole({
  name: "trainer",
  module: "holdfast_worker.trainer.worker",
  spec: TrainerSpec,
  operations,
  parts: {
    ArtifactRef,
    Chat,
    RatioBounds,
    Schedule,
    Optimizer,
    Lora,
    Offload,
    FileEntry,
    TensorEntry,
    Checkpoint,
    PublicationBase,
    PublicationProbe,
    Publication,
    Numerics,
    AlgorithmDescription,
    SkippedStep,
    StepRecord,
    EvaluatedBatch,
    NumericsLora: Numerics.shape.lora.unwrap(),
    NumericsOffload: Numerics.shape.offload,
    Message,
    Row,
    RefusedRow,
    GroupRef,
    SequenceColumn,
    TokenColumn,
    PreferencePair,
    TrajectoryBatch,
    SupervisedBatch,
    PreferenceBatch,
    UnpairedCompletion,
    UnpairedBatch,
  },
  reads: { Batch },
  // `Materialiser` knows which checkpoint, and which recorded batches come after it.
  rebuilt: {
    async from_record(ask, { load, redo }: TrainerRecord): Promise<void> {
      if (load) await ask("load", load);
      for (const { args, recorded } of redo) {
        const { steps } = await ask("train", args);
        checkSameSteps(args.to, { recorded, redone: steps });
      }
    },
  },
  groups: ({ trainer, value_model, head, seed, model }) => [
    trainerGroup(trainer, { seed, head, model }),
    ...(value_model
      ? [trainerGroup(valueTrainer(trainer, value_model), {
        seed,
        group: "critic",
        head: "value",
        block: "value_model",
        model,
      })]
      : []),
  ],
});
