import { z } from "zod";
import { setting } from "./setting.ts";

const /** @internal */ stopReasonSchema = z.enum([
  "stop",
  "length",
  "max_turns",
  "timeout",
  "error",
  "abort",
]);
/** Why a trajectory ended. `stop`: a stop token or string; `length`: the token limit cut it. */
export type StopReason = z.infer<typeof stopReasonSchema>;
/** Schema of {@linkcode StopReason}. */
export const StopReason: typeof stopReasonSchema = stopReasonSchema;

const /** @internal */ versionSpanSchema = z.strictObject({
  version: z.string(),
  start: z.int(),
  end: z.int(),
});
/** Tokens [start, end) of a trajectory were sampled at policy `version`. */
export type VersionSpan = z.infer<typeof versionSpanSchema>;
/** Schema of {@linkcode VersionSpan}. */
export const VersionSpan: typeof versionSpanSchema = versionSpanSchema;

const ADDED = { numerics: false, fork: "free", resume: "refused" } as const;

const /** @internal */ samplingSchema = z.strictObject({
  temperature: z.number().nonnegative().default(1).describe(
    "Logits are divided by it; 0 is greedy.",
  ),
  top_p: z.number().positive().max(1).default(1).describe(
    "Sample from the smallest set of tokens with this total probability.",
  ),
  top_k: z.int().min(-1).default(-1).describe("-1: the whole vocabulary.").register(setting, {
    unit: "tokens",
  }),
  min_p: z.number().min(0).max(1).default(0).describe(
    "Sample only from tokens at least this share as likely as the likeliest; 0: from all.",
  ).register(setting, { ...ADDED, unit: "fraction" }),
  repetition_penalty: z.number().positive().default(1).describe(
    "Divides the positive logits of tokens that the prompt or the completion has, and multiplies " +
      "their negative ones; 1: changes nothing.",
  ).register(setting, ADDED),
  tokens_max: z.int().positive().default(128).describe("Maximum tokens per completion.").register(
    setting,
    { unit: "tokens" },
  ),
  stop: z.array(z.string()).default([]).describe(
    "Strings that end a completion, in addition to the end-of-sequence token.",
  ),
  stop_token_ids: z.array(z.int().nonnegative()).default([]).describe(
    "Tokens that end a completion, in addition to the end-of-sequence token.",
  ).register(setting, ADDED),
  ignore_eos: z.boolean().default(false).describe(
    "Sample on after the end-of-sequence token: only `stop`, stop_token_ids and tokens_max end a " +
      "completion. For benchmarks of one length.",
  ).register(setting, ADDED),
});
/**
 * How tokens were drawn. Log-probabilities are of exactly this distribution: float32, logits after
 * the repetition penalty (Keskar et al. 2019, arXiv:1909.05858, eq. 1) divided by the temperature,
 * then min-p (Nguyen et al. 2024, arXiv:2407.01082), top-k and top-p. `temperature: 0` is greedy,
 * with log-probabilities at temperature 1.
 */
export type Sampling = z.infer<typeof samplingSchema>;
/** Schema of {@linkcode Sampling}. */
export const Sampling: typeof samplingSchema = samplingSchema;

/**
 * One sampled sequence: prompt, then everything after it. T = tokens.length. Packed in MessagePack
 * as little-endian `bin`: tokens int32 [T], action_mask uint8 [T], behaviour_logp float32 [T].
 * `action_mask` is 1 on sampled tokens (the stop token too), 0 on prompt and observations. Position
 * t belongs to the target: behaviour_logp[t] = log pi(tokens[t] | tokens[<t]); 0 where the mask is
 * 0.
 */
export type Trajectory = {
  /** Number of this sample in its group, from 0. */
  sample: number;
  tokens: Int32Array; // [T]
  action_mask: Uint8Array; // [T]
  behaviour_logp: Float32Array; // [T]
  versions: z.infer<typeof VersionSpan>[];
  stop: StopReason;
  /**
   * The completion as text, for rewards and people. Training never reads it, because text is never
   * tokenized again.
   */
  text: string;
  /** Optional reward of each token [T], from environments. */
  token_rewards?: Float32Array;
};

/** All samples of one draw. */
export type Group = {
  draw: number;
  row_id: string;
  prompt_text: string;
  trajectories: Trajectory[];
};

/** What one `generate` operation returns: one artifact. */
export type GeneratedSlab = { slab: string; version: string; sampling: Sampling; groups: Group[] };
