/** What TRL computes under the names of our algorithms. `profiles.ts` says what a profile is. */
import type { Framework } from "./framework.ts";

const trlTerms = {
  kl_coef: 0,
  kl_estimator: "k3_weighted",
  importance: "sequence_mask",
  importance_high: 3,
} as const;
const TRL_GRPO = [
  "TRL corrects importance only if vLLM samples: if TRL generates, use importance: none.",
  "TRL's entropy bonus is a mean over tokens under every loss_type; ours follows the aggregation.",
] as const;
const TRL_TOKENS =
  "TRL divides by the mean token count of a generation's optimizer steps, ours by the count " +
  "of the step: the two are equal with one step.";
const trlGroup = { clip_low: 0.2, clip_high: 0.2, std_epsilon: 1e-4, ...trlTerms } as const;

export const trl: Framework = {
  source: {
    name: "TRL",
    date: "2026-10-15",
    release: "1.16.0",
    sha256: "c4726e139dd40e1a41661511c639c8a68416782b2e3e8c0befebd77bb7ba0396",
  },
  ends: [
    "Fully masked completions count in TRL's sequence means, but not in ours.",
  ],
  algorithms: {
    grpo: {
      settings: { ...trlGroup, aggregation: "sequence_mean" },
      ends: [
        ...TRL_GRPO,
        'This is loss_type: "grpo"; TRL\'s default is "dapo", which is aggregation: token_mean.',
      ],
    },
    dr_grpo: {
      settings: { clip_low: 0.2, clip_high: 0.2, ...trlTerms, loss_denominator: 512 },
      ends: [
        ...TRL_GRPO,
        'This is loss_type: "dr_grpo" with scale_rewards: "none"; without the latter TRL ' +
        "keeps the standard deviation.",
        "loss_denominator is TRL's max_completion_length, 512 by default: set " +
        "it to yours.",
      ],
    },
    dapo: {
      settings: { ...trlGroup, aggregation: "token_mean", refill_batches_max: 0 },
      ends: [
        ...TRL_GRPO,
        TRL_TOKENS,
        'This is loss_type: "dapo", which leaves epsilon_high at 0.2; the paper has ' +
        "clip_high: 0.28.",
        "TRL has no dynamic sampling; its overlong penalty is a reward function.",
      ],
    },
    gspo: {
      settings: { ...trlGroup, aggregation: "token_mean" },
      ends: [
        ...TRL_GRPO,
        TRL_TOKENS,
        'This is importance_sampling_level: "sequence"; TRL leaves the bounds at 0.2, which ' +
        "never clip, and takes a token mean.",
        "The value of the loss is TRL's. TRL weights a KL by the ratio of the completion, ours " +
        "by the ratio of the token.",
      ],
    },
    gmpo: {
      settings: {
        clip_low: 0.4,
        clip_high: 0.4,
        std_epsilon: 1e-4,
        kl_coef: 0,
        kl_estimator: "k3",
        importance: "none",
        aggregation: "sequence_mean",
      },
      ends: [
        "This is its experimental GMPOTrainer, whose loss has no importance correction and no " +
        "entropy bonus, even if they are set.",
      ],
    },
    cispo: {
      settings: {
        clip_low: null,
        clip_high: -0.8,
        std_epsilon: 1e-4,
        ...trlTerms,
        aggregation: "token_mean",
      },
      ends: [
        ...TRL_GRPO,
        TRL_TOKENS,
        "TRL's epsilon_high is the bound itself, 0.2 by default; clip_high: 4 equals its 5.0.",
      ],
    },
    sapo: {
      settings: {
        temperature_positive: 1,
        temperature_negative: 1.05,
        std_epsilon: 1e-4,
        ...trlTerms,
        aggregation: "sequence_mean",
      },
      ends: [
        ...TRL_GRPO,
        'This is loss_type: "sapo".',
      ],
    },
    gdpo: {
      settings: { ...trlGroup, aggregation: "token_mean" },
      ends: [
        ...TRL_GRPO,
        TRL_TOKENS,
        'This is multi_objective_aggregation: "normalize_then_sum" with the default loss_type.',
      ],
    },
    rloo: {
      settings: {
        clip_low: 0.2,
        clip_high: 0.2,
        kl_coef: 0.05,
        kl_in: "reward",
        kl_estimator: "k1",
      },
    },
    sft: { settings: {} },
    dpo: {
      settings: { beta: 0.1, loss: "sigmoid", label_smoothing: 0, length_normalised: false },
      ends: ["TRL's sigmoid loss ignores label smoothing; its ipo is length_normalised: true."],
    },
    kto: {
      settings: { beta: 0.1, loss: "kto", desirable_weight: 1, undesirable_weight: 1 },
      ends: [
        "TRL estimates z_0 in each micro-batch, and averages it over ranks; ours covers the whole " +
        "optimizer step.",
      ],
    },
    reward_model: { settings: { center_coef: 0 } },
  },
};
