/**
 * Compatibility profiles: what other frameworks compute under the name of an algorithm, as settings
 * of ours. A profile is `FRAMEWORK(the algorithm's name, nothing else set)`: the defaults in the
 * framework's source files, not its recipes. It fills in omitted settings before the schema does.
 * It never copies how a framework's gradient depends on the split into micro-batches and ranks.
 * `ends` says in sentences where equality ends, `source` says what was read. After a change to
 * either, `tests/algs/peers/peers_test.ts` and `parity_test.ts` check whether settings and sentences
 * still hold.
 */
import type { AnyAlgorithm } from "../algorithm.ts";
import type { Framework, Name, Source } from "./framework.ts";
import { ALGORITHMS } from "../table.ts";
import { trl } from "./trl_profile.ts";

const verlTerms = { dual_clip: 3, kl_coef: 0, aggregation: "token_mean" } as const;
const verlClip = { clip_low: 0.2, clip_high: 0.2, ...verlTerms } as const;

const WHITENING = "verl whitens with the n - 1 standard deviation, and 1e-8 under its root.";
const CUT = "verl and OpenRLHF treat a cut completion like one that stopped; ours bootstraps.";
const EMPTY =
  "verl counts completions without a token in its mean over completions; ours leaves them out.";

const verl: Framework = {
  source: {
    name: "verl",
    date: "2026-08-22",
    repository: "https://github.com/verl-project/verl",
    commit: "1dda039b9c6311889a9c9a26040677e1254814f9",
  },
  ends: [
    "verl keeps log-ratios within ±20 (GSPO's at most 10, GMPO's unclamped) and k3 within ±10; " +
    "ours are unclamped.",
    "verl cuts a round into mini-batches of 256 prompts by default: set " +
    "trainer.updates_per_batch to your number of steps.",
  ],
  algorithms: {
    grpo: { settings: { ...verlClip, std_epsilon: 1e-6 } },
    dr_grpo: {
      settings: { clip_low: 0.2, clip_high: 0.2, dual_clip: 3, kl_coef: 0 },
      ends: [
        "This is norm_adv_by_std_in_grpo: false with loss_agg_mode: " +
        '"seq-mean-token-sum-norm", which divides by the ' +
        "completions (since 26 February 2026) and by loss_scale_factor, the padded length " +
        "of the responses by default: " +
        "set loss_denominator to it.",
        EMPTY,
      ],
    },
    dapo: {
      settings: {
        ...verlTerms,
        clip_low: 0.2,
        clip_high: 0.28,
        std_epsilon: 1e-6,
        refill_batches_max: 10,
        surplus: "discard",
      },
      ends: [
        "This is its DAPO recipe (recipe/dapo of v0.6.1), whose dual clip is 10 in some " +
        "scripts and 3 by default.",
        "verl's recipe fails if its last batch leaves a round incomplete; ours trains on it.",
      ],
    },
    gspo: {
      settings: {
        clip_low: 3e-4,
        clip_high: 4e-4,
        std_epsilon: 1e-6,
        kl_coef: 0,
        aggregation: "sequence_mean",
      },
      ends: [
        "Bounds and aggregation are those of verl's example; by default its bounds are " +
        "0.2, and since 0.9.1 its aggregation " +
        "is loss_agg_mode, a token mean by default.",
        "A KL or an entropy bonus, if there is one, follows its loss_agg_mode; ours the " +
        "aggregation.",
        EMPTY,
      ],
    },
    cispo: {
      settings: {
        clip_low: 0.2,
        clip_high: 0.2,
        std_epsilon: 1e-6,
        kl_coef: 0,
        aggregation: "token_mean",
      },
    },
    gmpo: {
      settings: {
        clip_low: 0.2,
        clip_high: 0.2,
        std_epsilon: 1e-6,
        kl_coef: 0,
        aggregation: "sequence_mean",
      },
      ends: [
        "This is loss_mode: geo_mean, which reads its clip ratios as logarithms: the paper's are " +
        "0.4. Its policy term ignores loss_agg_mode; a KL or an entropy bonus, if there is one, " +
        "follows it, and ours the aggregation.",
        EMPTY,
      ],
    },
    sapo: {
      settings: {
        temperature_positive: 1,
        temperature_negative: 1.05,
        std_epsilon: 1e-6,
        kl_coef: 0,
        aggregation: "sequence_mean",
      },
      ends: [
        "This is loss_mode: sapo, whose policy term ignores loss_agg_mode; a KL or an entropy " +
        "bonus, if there is one, follows it, and ours the aggregation.",
        EMPTY,
      ],
    },
    ppo: {
      settings: { ...verlClip, gamma: 1, lambda: 1, whiten: true, value_clip: 0.5 },
      ends: [WHITENING, CUT],
    },
    reinforce_plus_plus: {
      settings: { ...verlClip, gamma: 1 },
      ends: [WHITENING],
    },
    reinforce_plus_plus_baseline: {
      settings: { ...verlClip },
      ends: [WHITENING],
    },
    sft: { settings: {} },
  },
};

const openrlhfTerms = {
  clip_low: 0.2,
  clip_high: 0.2,
  dual_clip: null,
  kl_coef: 0.01,
  kl_estimator: "k1",
  aggregation: "token_mean",
} as const;
/**
 * OpenRLHF subtracts the KL of a token and of later ones from its advantage, after the baseline.
 */
const openrlhfGroup = { ...openrlhfTerms, kl_in: "advantage" } as const;
const openrlhfTokens = { ...openrlhfTerms, kl_in: "reward" } as const;
const ROOT =
  "When whitening, OpenRLHF divides by the root of a variance of at least 1e-8; ours adds " +
  "1e-8 to the standard deviation.";
const ROUNDED =
  "Equal rewards have advantages of exactly 0 here; OpenRLHF divides the rounding error of " +
  "their float32 mean by 1e-9, so eight rewards of 2.1 have advantages of 0.93.";

const openrlhf: Framework = {
  source: {
    name: "OpenRLHF",
    date: "2026-08-13",
    repository: "https://github.com/OpenRLHF/OpenRLHF",
    commit: "3c3be6234e0cb353e76bb8019947db9dfe99fca7",
  },
  ends: [
    "OpenRLHF keeps log-ratios within ±20 (except GSPO's) and KL estimates within ±10; ours " +
    "are unclamped.",
    "OpenRLHF clips a reward at ±10, after the group's baseline if there is one; ours is " +
    "unclipped.",
    "OpenRLHF takes a step for each 128 completions by default: set " +
    "trainer.updates_per_batch to your number of steps.",
  ],
  algorithms: {
    grpo: { settings: { ...openrlhfGroup, std_epsilon: 1e-9 }, ends: [ROUNDED] },
    dr_grpo: { settings: openrlhfGroup },
    gspo: {
      settings: {
        ...openrlhfGroup,
        std_epsilon: 1e-9,
        ratio_gradient: "sequence",
        aggregation: "sequence_mean",
      },
      ends: [
        ROUNDED,
        "If its correction for vLLM is on, its ratio uses the sampler's log-probabilities; " +
        "ours uses the trainer's.",
        "It leaves the bounds at 0.2, which never clip a mean of log-ratios.",
      ],
    },
    ppo: {
      settings: { ...openrlhfTokens, gamma: 1, lambda: 1, whiten: true, value_clip: 0.5 },
      ends: [CUT, ROOT],
    },
    reinforce_plus_plus: { settings: { ...openrlhfTokens, gamma: 1 }, ends: [ROOT] },
    reinforce_plus_plus_baseline: { settings: openrlhfGroup, ends: [ROOT] },
    sft: { settings: {} },
    dpo: {
      settings: { beta: 0.1, loss: "sigmoid", label_smoothing: 0, length_normalised: false },
      ends: ["Label smoothing and ipo use the same formulas, with sums."],
    },
    reward_model: {
      settings: { center_coef: 0 },
      ends: ["OpenRLHF reads margins only with margin_loss; ours always."],
    },
  },
};

const feynrlTerms = {
  kl_coef: 0,
  kl_in: "loss",
  kl_estimator: "k3",
  entropy_coef: 0,
  aggregation: "token_mean",
} as const;
const BROADCAST =
  "FeynRL gives the advantage only to the last token unless reward.broadcast is true; ours " +
  "gives it to every token.";
const SAMPLER = "FeynRL's ratio uses the sampler's log-probabilities; ours uses the trainer's.";

const feynrl: Framework = {
  source: {
    name: "FeynRL",
    date: "2026-08-05",
    repository: "https://github.com/FeynRL-project/FeynRL",
    commit: "4f7eafe06f840030d278080b400f5cd574b37da3",
  },
  ends: ["FeynRL keeps the exponent of k3 within ±10, and that of P3O's pull; ours is unclamped."],
  algorithms: {
    grpo: {
      settings: { ...feynrlTerms, clip_low: 0.2, clip_high: 0.2, std_epsilon: 1e-8 },
      ends: [BROADCAST, SAMPLER],
    },
    cispo: {
      settings: { ...feynrlTerms, clip_low: 0.2, clip_high: 0.2, std_epsilon: 1e-8 },
      ends: [BROADCAST, SAMPLER],
    },
    dapo: {
      settings: {
        ...feynrlTerms,
        clip_low: 0.2,
        clip_high: 0.2,
        std_epsilon: 1e-8,
        refill_batches_max: 0,
      },
      ends: [
        SAMPLER,
        "FeynRL needs reward.broadcast: true for it, because its loss is per token.",
        "FeynRL drops groups of equal rewards and keeps all of them if none is left; here " +
        "their advantage is 0 and their tokens count in the mean.",
      ],
    },
    p3o: {
      settings: { ...feynrlTerms, pull: "k3", std_epsilon: 1e-8 },
      ends: [
        BROADCAST,
        "FeynRL has one effective sample size per micro-batch; ours covers the whole " +
        "optimizer step.",
      ],
    },
    ppo: {
      settings: { ...feynrlTerms, clip_low: 0.2, clip_high: 0.2, whiten: true, value_clip: null },
      ends: [
        SAMPLER,
        "FeynRL has no default for gamma and tau (its lambda): set gamma and lambda to your " +
        "values.",
      ],
    },
    sft: { settings: {} },
    dpo: {
      settings: { beta: 0.1, loss: "sigmoid", label_smoothing: 0, length_normalised: true },
    },
  },
};

const FRAMEWORKS = { trl, verl, openrlhf, feynrl };
type FrameworkName = keyof typeof FRAMEWORKS;

/** A profile of one algorithm. */
type Profile = {
  /** The framework, and the version that was read. */
  about: string;
  source: Source;
  settings: Readonly<Record<string, unknown>>;
  ends: readonly string[];
};

/** The frameworks that know an algorithm. */
export function profilesOf(algorithm: string): FrameworkName[] {
  return (Object.keys(FRAMEWORKS) as FrameworkName[]).filter((name) =>
    profileOf(name, algorithm) !== null
  );
}

/**
 * What a framework sets for an algorithm; null: there is no such framework, or it lacks the
 * algorithm.
 */
export function profileOf(framework: string, algorithm: string): Profile | null {
  if (!Object.hasOwn(FRAMEWORKS, framework)) return null;
  const { source, ends: always, algorithms } = FRAMEWORKS[framework as FrameworkName] as Framework;
  if (!Object.hasOwn(algorithms, algorithm)) return null;
  const { settings, ends = [] } = algorithms[algorithm as Name]!;
  const { credit }: AnyAlgorithm = ALGORITHMS[algorithm as Name];
  return {
    about: aboutOf(source),
    source,
    settings,
    ends: credit === undefined ? ends : [...ends, ...always],
  };
}

function aboutOf(source: Source): string {
  const { name, date } = source;
  return "release" in source
    ? `${name} ${source.release}`
    : `${name} ${source.commit.slice(0, 12)} of ${date}`;
}
