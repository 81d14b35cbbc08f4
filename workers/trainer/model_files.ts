import { z } from "zod";

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

/** The base model of a published adapter. */
export const PublicationBase = z.strictObject({ dir: z.string(), digest: z.string() });

/** What the trainer's own forward says of fixed tokens. */
export const PublicationProbe = z.strictObject({
  tokens: z.array(z.int()),
  logp: z.array(z.number()).describe("Of each token but the first, at temperature 1."),
});

const /** @internal */ publicationSchema = z.strictObject({
  version: z.string(),
  dir: z.string(),
  digest: z.string(),
  tensors: z.array(TensorEntry),
  files: z.array(FileEntry),
  base: PublicationBase.optional().describe(
    "The base model of the adapter in \`dir\`. Absent: \`dir\` is a complete model.",
  ),
  probe: PublicationProbe.optional().describe(
    "Samplers must compute the same. Absent: there is nothing to compare.",
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
 * A committed checkpoint: a Hugging Face directory (`hf/`) and the sharded training state next to
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

/** The checkpoint formed by all ranks' answers to `save`. */
export function wholeCheckpoint(shards: Checkpoint[]): Checkpoint {
  return { ...shards[0]!, files: shards.flatMap((shard) => shard.files) };
}
