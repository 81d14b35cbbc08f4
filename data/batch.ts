import { z } from "zod";
import { ArtifactRef } from "./artifact_ref.ts";
import { Chat } from "./chat.ts";
import { PreferencePair } from "./preference.ts";
import { Row } from "./prompt.ts";
import { UnpairedCompletion } from "./unpaired.ts";

const /** @internal */ groupRefSchema = z.strictObject({
  draw: z.int().nonnegative(),
  slab: ArtifactRef.describe("MessagePack of a GeneratedSlab."),
  index: z.int().nonnegative().describe("Index of the group in the slab."),
  samples: z.array(z.int().nonnegative()),
});
/**
 * One group inside a slab artifact. `samples`: indices of the trajectories that are used, in order.
 */
export type GroupRef = z.infer<typeof groupRefSchema>;
/** Schema of {@linkcode GroupRef}. */
export const GroupRef: typeof groupRefSchema = groupRefSchema;

/**
 * One number per sequence [N] (it broadcasts over the sequence's unmasked tokens), or an artifact
 * with one number per token: MessagePack `{ values: bin[] }`, float32 little-endian, [N][T] aligned
 * to the trajectory's tokens. N runs over the batch's groups in order, samples in order.
 */
export const Column = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("sequence"), values: z.array(z.number()) }),
  z.strictObject({ kind: z.literal("token"), artifact: ArtifactRef }),
]);
export type Column = z.infer<typeof Column>;

const /** @internal */ scoredColumnSchema = z.enum([
  "old_logp",
  "ref_logp",
  "values",
  "bootstrap",
  "score",
]);
/**
 * Columns that a model computes for sequences: log-probabilities and values (V before the token)
 * one per token [T]; `bootstrap` (V after the last token) and `score` one per sequence [1].
 */
export type ScoredColumn = z.infer<typeof scoredColumnSchema>;
/** Schema of {@linkcode ScoredColumn}. */
export const ScoredColumn: typeof scoredColumnSchema = scoredColumnSchema;

const chat = Chat.optional().describe(
  "How chats are rendered; absent: turns end with the end-of-sequence token.",
);

const steps = {
  temperature: z.number().positive().default(1).describe(
    "Divisor of the logits before every log-probability.",
  ),
  coef: z.record(z.string(), z.number()).default({}).describe(
    "Values of the expression's `coef.NAME` inputs.",
  ),
  updates: z.array(z.array(z.int().nonnegative())).min(1).describe(
    "One entry per optimizer step: the indices of its groups (or rows). Groups are never split.",
  ),
};

const /** @internal */ batchSchema = z.discriminatedUnion("kind", [
  z.strictObject({
    kind: z.literal("trajectories"),
    groups: z.array(GroupRef),
    columns: z.record(z.string(), Column).describe(
      "advantage, old_logp, ref_logp, returns, ... by input name.",
    ),
    staleness: z.array(z.int()).default([]).describe(
      "[N] policy versions between sampling and training.",
    ),
    masked: z.array(z.int().nonnegative()).min(1).optional().describe(
      "Sequences, of N, that no step holds: they count in no sum and no denominator of the " +
        "loss. Absent: none.",
    ),
    ...steps,
  }),
  z.strictObject({ kind: z.literal("supervised"), rows: z.array(Row), chat, ...steps }),
  z.strictObject({
    kind: z.literal("preference"),
    pairs: z.array(PreferencePair),
    chat,
    columns: z.record(z.string(), Column).describe(
      "Over 2P sequences: chosen, rejected, chosen, ...",
    ),
    ...steps,
  }),
  z.strictObject({
    kind: z.literal("unpaired"),
    completions: z.array(UnpairedCompletion),
    mismatched: z.array(z.int().nonnegative()).optional().describe(
      "[N] places of completions: behind each prompt the loss also reads that of a different " +
        "one. Absent: it does not.",
    ),
    chat,
    columns: z.record(z.string(), Column).describe(
      "Over N sequences, or 2N: completion, mismatched completion, completion, ...",
    ),
    ...steps,
  }),
]);
/** A training batch: a list of references, not a copy. Its sha256 names the redo log's entry. */
export type Batch = z.infer<typeof batchSchema>;
/** Schema of {@linkcode Batch}. */
export const Batch: typeof batchSchema = batchSchema;
