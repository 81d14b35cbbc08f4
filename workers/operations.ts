import { z } from "zod";
import { ArtifactRef, Numerics, Optimizer, Sampling, Slab } from "../data/mod.ts";

/**
 * The operations of trainers and samplers: what the engine asks for (`args`) and what rank 0 answers (`output`).
 * Each names the version it starts from and the one it makes. A worker that holds another version answers
 * `{ not_resident: <the version it holds, or null> }` and does nothing: the engine materialises it first.
 */
export const NotResident = z.strictObject({ not_resident: z.string().nullable() });

/** A file of a checkpoint or a publication: relative path, hash and size. */
export const FileEntry = z.strictObject({ path: z.string(), sha256: z.string(), bytes: z.int() });

/** One tensor of a publication, by the name the model's architecture gives it in a Hugging Face directory. */
export const TensorEntry = z.strictObject({
  name: z.string(),
  dtype: z.string(),
  shape: z.array(z.int()),
  sha256: z.string(),
});

/** Weights of a version as a plain Hugging Face directory. `digest` is `policy.digest` of the command line's contract. */
export const Publication = z.strictObject({
  version: z.string(),
  dir: z.string(),
  digest: z.string(),
  tensors: z.array(TensorEntry),
  files: z.array(FileEntry),
});
export type Publication = z.infer<typeof Publication>;

/** A committed checkpoint: a Hugging Face directory (`hf/`) with the sharded training state beside it (`state/`). */
export const Checkpoint = z.strictObject({
  version: z.string(),
  dir: z.string(),
  digest: z.string(),
  world_size: z.int(),
  files: z.array(FileEntry).describe("Of all ranks; a checkpoint is whole or it is not there."),
});
export type Checkpoint = z.infer<typeof Checkpoint>;

/** The checkpoint that the answers of all ranks to `save` make. */
export function wholeCheckpoint(outputs: unknown[]): Checkpoint {
  const shards = outputs.map((output) => Checkpoint.parse(output));
  return { ...shards[0]!, files: shards.flatMap((shard) => shard.files) };
}

export const StepRecord = z.strictObject({
  loss: z.number(),
  grad_norm: z.number(),
  lr: z.number(),
  n_tokens: z.number(),
  n_sequences: z.number(),
  micro_batches: z.int(),
  metrics: z.record(z.string(), z.number()),
});
export type StepRecord = z.infer<typeof StepRecord>;

const trainer = {
  /** Makes a small randomly initialised model and its tokenizer on the spot (quickstart, tests). */
  create_model: {
    args: z.strictObject({ recipe: z.string(), seed: z.int(), dir: z.string() }),
    output: z.strictObject({ dir: z.string(), digest: z.string() }),
  },
  /** Digest of a model directory's weights, after checking that it is one. */
  inspect_model: {
    args: z.strictObject({ dir: z.string() }),
    output: z.strictObject({ digest: z.string(), parameters: z.int(), architecture: z.string() }),
  },
  load: {
    args: z.strictObject({
      version: z.string(),
      model_path: z.string(),
      optimizer: Optimizer,
      checkpoint: Checkpoint.nullable().describe("null: start from the model directory, with fresh optimizer state."),
    }),
    output: z.strictObject({ version: z.string(), numerics: Numerics }),
  },
  train: {
    args: z.strictObject({
      from: z.string(),
      to: z.string(),
      batch: ArtifactRef.describe("JSON of a Batch."),
      loss: ArtifactRef.describe("JSON of an Expression."),
      optimizer: Optimizer.describe("Of these steps: a fork may train on with other settings than its prefix."),
      micro_batch_tokens_max: z.int().positive(),
    }),
    output: z.union([NotResident, z.strictObject({ version: z.string(), steps: z.array(StepRecord) })]),
  },
  /** Log-probabilities of a batch's tokens under the resident version, or under the reference model. Blob i = column i. */
  score: {
    args: z.strictObject({
      version: z.string(),
      batch: ArtifactRef,
      columns: z.array(z.enum(["old_logp", "ref_logp"])).min(1),
      reference_path: z.string().nullable(),
      micro_batch_tokens_max: z.int().positive(),
    }),
    output: z.union([NotResident, z.strictObject({ columns: z.array(z.string()) })]),
  },
  publish: {
    args: z.strictObject({ version: z.string(), dir: z.string() }),
    output: z.union([NotResident, Publication]),
  },
  /** Every rank answers its own files; the engine commits the union. */
  save: { args: z.strictObject({ version: z.string(), dir: z.string() }), output: z.union([NotResident, Checkpoint]) },
};

/** Log-probabilities of fixed tokens: the proof that a publication reached the kernels. */
export const Probe = z.strictObject({
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
