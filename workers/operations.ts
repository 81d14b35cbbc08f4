import { z } from "zod";
import {
  AlgorithmDescription,
  ArtifactRef,
  Chat,
  Numerics,
  Optimizer,
  RatioBounds,
  Sampling,
  ScoredColumn,
  Slab,
  StepCut,
} from "../data/mod.ts";

/**
 * The operations of trainers and samplers: what the engine asks for (`args`) and what rank 0 answers (`output`).
 * Each names the version it starts from and the one it makes. A worker that holds another version answers
 * `{ not_resident: <the version it holds, or null> }` and does nothing: the engine materialises it first.
 */
export const NotResident = z.strictObject({ not_resident: z.string().nullable() });
export type NotResident = z.infer<typeof NotResident>;

/** A file of a checkpoint or a publication: relative path, hash and size. */
export const FileEntry = z.strictObject({ path: z.string(), sha256: z.string(), bytes: z.int() });

/**
 * One tensor of a publication, by the name the model's architecture gives it in a Hugging Face
 * directory.
 */
export const TensorEntry = z.strictObject({
  name: z.string(),
  dtype: z.string(),
  shape: z.array(z.int()),
  sha256: z.string(),
});

/** The model that a published adapter stands beside. */
export const PublicationBase = z.strictObject({ dir: z.string(), digest: z.string() });

const /** @internal */ publicationSchema = z.strictObject({
  version: z.string(),
  dir: z.string(),
  digest: z.string(),
  tensors: z.array(TensorEntry),
  files: z.array(FileEntry),
  base: PublicationBase.optional().describe(
    "The base model of the adapter in \`dir\`. Absent: \`dir\` is a complete model.",
  ),
});
/**
 * Weights of a version as a plain Hugging Face directory. `digest` is `policy.digest` of the
 * command line's contract.
 */
export type Publication = z.infer<typeof publicationSchema>;
/** Schema of {@linkcode Publication}. */
export const Publication: typeof publicationSchema = publicationSchema;

/**
 * A committed checkpoint: a Hugging Face directory (`hf/`) with the sharded training state beside
 * it (`state/`).
 */
export const Checkpoint = z.strictObject({
  version: z.string(),
  dir: z.string(),
  digest: z.string(),
  world_size: z.int(),
  files: z.array(FileEntry).describe("Of all ranks; a checkpoint is complete or absent."),
});
export type Checkpoint = z.infer<typeof Checkpoint>;

/** The checkpoint that the answers of all ranks to `save` make. */
export function wholeCheckpoint(shards: Checkpoint[]): Checkpoint {
  return { ...shards[0]!, files: shards.flatMap((shard) => shard.files) };
}

/** Why no rank took a step, and where that came from as far as it is known. */
const SkippedStep = z.strictObject({
  cause: z.enum(["loss", "grad_norm"]).describe("What was not finite."),
  node: z.string().nullable().describe("Of the loss's expression; of a norm the input with the largest gradient."),
  sequence: z.int().nullable().describe("Its place in the step."),
  token: z.int().nullable(),
});
type SkippedStep = z.infer<typeof SkippedStep>;

export const StepRecord = z.strictObject({
  loss: z.number().nullable().describe("null: not finite."),
  grad_norm: z.number().nullable().describe("null: not finite."),
  skipped: SkippedStep.optional().describe("Left out of a step that ran."),
  lr: z.number(),
  n_tokens: z.number(),
  n_sequences: z.number(),
  micro_batches: z.int(),
  metrics: z.record(z.string(), z.number()),
});
export type StepRecord = z.infer<typeof StepRecord>;

const /** @internal */ evaluatedBatchSchema = z.strictObject({
  loss: z.number(),
  n_tokens: z.number(),
  n_sequences: z.number(),
  micro_batches: z.int(),
  metrics: z.record(z.string(), z.number()),
});
/** What a loss says of a batch. */
export type EvaluatedBatch = z.infer<typeof evaluatedBatchSchema>;
/** Schema of {@linkcode EvaluatedBatch}. */
export const EvaluatedBatch: typeof evaluatedBatchSchema = evaluatedBatchSchema;

const ModelDigest = z.string().nullable().describe(
  "Recorded digest of the directory's weights: weights with a different digest are rejected. null: unknown.",
);

const trainer = {
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
      use: z.enum(["prompt", "completion", "preference"]).describe("What rows hold besides a prompt."),
      rows: ArtifactRef.describe("JSON: a list of rows."),
      chat: Chat.nullable().describe("How chats are rendered; null: turns end with the end-of-sequence token."),
    }),
    output: z.strictObject({
      rows: z.int(),
      model_tokens_max: z.int().nullable().describe(
        "The model's positions; null: its configuration does not say.",
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
      checkpoint: Checkpoint.nullable().describe("null: start from the model directory, with fresh optimizer state."),
      model_digest: ModelDigest,
    }),
    output: z.strictObject({ version: z.string(), numerics: Numerics }),
  },
  train: {
    args: z.strictObject({
      from: z.string(),
      to: z.string(),
      batch: ArtifactRef.describe("JSON of a Batch."),
      loss: ArtifactRef.describe("JSON of a RecordedLoss."),
      optimizer: Optimizer.describe("Of these steps: a fork may train with settings different from its prefix's."),
      micro_batch_tokens_max: z.int().positive(),
      ...StepCut.shape,
      mismatch: RatioBounds.nullable().describe(
        "Range for measuring how far the policy is from the sampling policy. null: nothing is measured, as in a redo.",
      ),
      non_finite_max: z.int().positive().nullable().describe(
        "This many consecutive skipped steps fail. null: no limit, as in a redo.",
      ),
    }),
    output: z.union([NotResident, z.strictObject({ version: z.string(), steps: z.array(StepRecord) })]),
  },
  /**
   * What the resident version, or the reference model, says of a batch's tokens. Blob i = column i.
   */
  score: {
    args: z.strictObject({
      version: z.string(),
      batch: ArtifactRef,
      columns: z.array(ScoredColumn).min(1),
      reference_path: z.string().nullable().describe("null: the model itself, its adapter switched off."),
      reference_digest: ModelDigest,
      reference_offload: z.boolean().describe("Keep the reference on the CPU between uses."),
      micro_batch_tokens_max: z.int().positive(),
      ...StepCut.shape,
    }),
    output: z.union([NotResident, z.strictObject({ columns: z.array(z.string()) })]),
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
  },
  publish: {
    args: z.strictObject({
      version: z.string(),
      dir: z.string(),
      form: z.enum(["merged", "adapter"]).nullable().describe(
        "Of a policy trained by an adapter; null: as configured.",
      ),
    }),
    output: z.union([NotResident, Publication]),
  },
  /** Every rank answers its own files; the engine commits the union. */
  save: { args: z.strictObject({ version: z.string(), dir: z.string() }), output: z.union([NotResident, Checkpoint]) },
};

/** Log-probabilities of fixed tokens: the proof that a publication reached the kernels. */
const Probe = z.strictObject({
  logp: z.array(z.number()),
  sha256: z.string().describe("Of the float32 bytes."),
});

const sampler = {
  /**
   * Opens the architecture of `model_path` on a noise copy of the weights if that was not done yet, then replaces the weights in
   * place by the publication. Fails if a hash differs from the manifest, or the probe says that old weights are still used.
   */
  load: {
    args: z.strictObject({ version: z.string(), model_path: z.string(), publication: Publication }),
    output: z.strictObject({
      version: z.string(),
      probe: Probe,
      previous_probe: Probe.nullable(),
      tensors_loaded: z.int(),
      seconds: z.number(),
    }),
  },
  generate: {
    args: z.strictObject({
      version: z.string(),
      slab: Slab,
      samples_per_prompt: z.int().positive(),
      sampling: Sampling,
      seed: z.int().describe("The run's seed. Randomness is keyed by (seed, draw, sample, token)."),
    }),
    output: z.union([
      NotResident,
      z.strictObject({
        version: z.string(),
        groups: z.int(),
        samples: z.int(),
        tokens: z.int(),
        prompt_tokens: z.int(),
        seconds: z.number(),
      }),
    ]),
  },
  /** The probe of the resident weights, for tests. */
  probe: { args: z.strictObject({}), output: Probe },
};

export const OPERATIONS = { trainer, sampler };
export type Role = keyof typeof OPERATIONS;
