import type { MetricStyle } from "../../configs/mod.ts";

type Style = Exclude<MetricStyle, "holdfast">;

/** Names that frameworks use for what we measure. A metric without a name there keeps ours. */
const NAMES: Record<Style, Record<string, string>> = {
  trl: {
    "reward/mean": "reward",
    "reward/std": "reward_std",
    "reward/zero_std_frac": "frac_reward_zero_std",
    "reward/accuracy": "rewards/accuracies",
    "reward/margin": "rewards/margins",
    "reward/chosen": "rewards/chosen",
    "reward/rejected": "rewards/rejected",
    "policy/kl_ref": "kl",
    "policy/clip_fraction": "clip_ratio/region_mean",
    "policy/entropy": "entropy",
    "policy/loss": "loss",
    "optim/grad_norm": "grad_norm",
    "optim/lr": "learning_rate",
    "completions/length_mean": "completions/mean_length",
    "completions/length_max": "completions/max_length",
    "completions/truncated_frac": "completions/clipped_ratio",
    "perf/trained_tokens": "num_tokens",
  },
  verl: {
    "reward/mean": "critic/rewards/mean",
    "policy/kl_ref": "actor/kl_loss",
    "policy/approx_kl": "actor/ppo_kl",
    "policy/clip_fraction": "actor/pg_clipfrac",
    "policy/entropy": "actor/entropy",
    "policy/loss": "actor/pg_loss",
    "optim/grad_norm": "actor/grad_norm",
    "optim/lr": "actor/lr",
    "value/loss": "critic/vf_loss",
    "value/explained_variance": "critic/vf_explained_var",
    "optim/value_grad_norm": "critic/grad_norm",
    "optim/value_lr": "critic/lr",
    "completions/length_mean": "response_length/mean",
    "completions/length_max": "response_length/max",
    "completions/truncated_frac": "response_length/clip_ratio",
    "time/generate_s": "timing_s/gen",
  },
  openrlhf: {
    "reward/mean": "reward",
    "reward/std": "group_reward_std",
    "policy/kl_ref": "kl",
    "policy/approx_kl": "ppo_kl",
    "policy/clip_fraction": "ppo_clip_ratio",
    "policy/entropy": "entropy_loss",
    "policy/loss": "policy_loss",
    "optim/lr": "actor_lr",
    "value/loss": "critic_loss",
    "optim/value_lr": "critic_lr",
    "completions/length_mean": "response_length",
    "time/generate_s": "timing/generation",
  },
};

/** The metric of one reward function, as frameworks name it. */
const PARTS: Record<Style, string | null> = { trl: "rewards/$1/mean", verl: null, openrlhf: null };
const PART = /^reward\/(.+)\/mean$/;

/** Metrics with the names of a framework. */
export function styled(
  metrics: Record<string, number>,
  style: MetricStyle,
): Record<string, number> {
  if (style === "holdfast") return metrics;
  const part = PARTS[style];
  const named = (name: string) =>
    NAMES[style][name] ?? (part === null ? name : name.replace(PART, part));
  return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [named(name), value]));
}
