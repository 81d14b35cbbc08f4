/**
 * Ours under `profile: trl` against TRL 1.16.0's own code, float64, one rank, one micro-batch:
 * advantages, loss and gradient. TRL runs with the defaults of its own configurations; a case names
 * what it sets beside them, on both sides.
 *
 * Left out, as TRL has another formula or none: label smoothing, PPO, completions without a token.
 */
import { deepStrictEqual, ok } from "node:assert/strict";
import {
  AlgorithmChoice,
  ALGORITHMS,
  creditOf,
  type EvaluatedSequence,
  expressionsOf,
  firstCoef,
  maskedOf,
  profileOf,
} from "../../../algs/mod.ts";
import { ensureTrl } from "../../environments.ts";
import { randomStep, uniform } from "../properties/steps.ts";
import { runTorch, TorchDriver } from "../drivers/torch.ts";
import { near } from "../worked.ts";

const TRL = new TorchDriver(
  new URL("../drivers/trl_driver.py", import.meta.url).pathname,
  await ensureTrl(),
);

type Side = Record<string, unknown>;
type Outcome = {
  loss: number;
  gradients: Record<string, number[][]>;
  advantages?: number[];
  metrics?: Record<string, number>;
};
type Case = {
  /** TRL's trainer, and what is set on it. */
  trainer: "grpo" | "gmpo" | "rloo" | "dpo" | "kto" | "sft";
  trl: Side;
  name: keyof typeof ALGORITHMS;
  ours?: Side;
  /** The batch serves one step: both read `old_logp` as the detached `logp`. */
  old_is_current?: boolean;
  /**
   * The last completion of each group is cut. `counts`: TRL's mean over completions counts it, as
   * the profile says.
   */
  cut?: "not_counted" | "counts";
  /** Of each reward function; one of weight 1 by default. The last does not apply everywhere. */
  weights?: number[];
};

const vllm = { use_vllm: true };
/**
 * TRL corrects importance only where vLLM samples. Without it, it has old log-probabilities if a
 * batch is used twice.
 */
const here = { importance: "none" };
const twice = { num_iterations: 2 };

const CASES: Case[] = [
  { trainer: "grpo", trl: { ...vllm, loss_type: "grpo" }, name: "grpo" },
  { trainer: "grpo", trl: { loss_type: "grpo" }, name: "grpo", ours: here, old_is_current: true },
  { trainer: "grpo", trl: { ...twice, loss_type: "grpo" }, name: "grpo", ours: here },
  {
    trainer: "grpo",
    trl: { ...twice, loss_type: "grpo", beta: 0.04, delta: 1.5, epsilon_high: 0.28 },
    name: "grpo",
    ours: { ...here, kl_coef: 0.04, dual_clip: 1.5, clip_high: 0.28 },
  },
  {
    trainer: "grpo",
    trl: { ...twice, loss_type: "grpo", beta: 0.04, use_bias_correction_kl: false },
    name: "grpo",
    ours: { ...here, kl_coef: 0.04, kl_estimator: "k3" },
  },
  ...(["token_truncate", "token_mask", "sequence_truncate", "sequence_mask"] as const).map((
    mode,
  ): Case => ({
    trainer: "grpo",
    trl: {
      ...vllm,
      loss_type: "grpo",
      vllm_importance_sampling_mode: mode,
      vllm_importance_sampling_clip_min: 0.8,
      vllm_importance_sampling_clip_max: 1.2,
    },
    name: "grpo",
    ours: { importance: mode, importance_low: 0.8, importance_high: 1.2 },
  })),
  {
    trainer: "grpo",
    trl: { ...vllm, loss_type: "dr_grpo", scale_rewards: "none" },
    name: "dr_grpo",
  },
  {
    trainer: "grpo",
    trl: {
      ...twice,
      loss_type: "dr_grpo",
      scale_rewards: "none",
      max_completion_length: 32,
      beta: 0.1,
    },
    name: "dr_grpo",
    ours: { ...here, loss_denominator: 32, kl_coef: 0.1 },
  },
  { trainer: "grpo", trl: { ...vllm }, name: "dapo" },
  {
    trainer: "grpo",
    trl: { ...twice, epsilon_high: 0.28, beta: 0.04, entropy_coef: 0.01 },
    name: "dapo",
    ours: { ...here, clip_high: 0.28, kl_coef: 0.04, entropy_coef: 0.01 },
  },
  { trainer: "grpo", trl: { ...vllm, loss_type: "cispo" }, name: "cispo" },
  {
    trainer: "grpo",
    trl: { ...twice, loss_type: "cispo", epsilon_high: 5, beta: 0.04 },
    name: "cispo",
    ours: { ...here, clip_high: 4, kl_coef: 0.04 },
  },
  { trainer: "grpo", trl: { ...vllm, loss_type: "sapo" }, name: "sapo" },
  {
    trainer: "grpo",
    trl: {
      ...twice,
      loss_type: "sapo",
      beta: 0.04,
      sapo_temperature_pos: 2,
      sapo_temperature_neg: 0.5,
    },
    name: "sapo",
    ours: { ...here, kl_coef: 0.04, temperature_positive: 2, temperature_negative: 0.5 },
  },
  ...[[1], [1, 0.5], [2, -1, 0.25]].map((weights): Case => ({
    trainer: "grpo",
    trl: { ...twice, multi_objective_aggregation: "normalize_then_sum" },
    name: "gdpo",
    ours: here,
    weights,
  })),
  { trainer: "grpo", trl: { ...vllm, importance_sampling_level: "sequence" }, name: "gspo" },
  {
    trainer: "grpo",
    trl: {
      ...twice,
      importance_sampling_level: "sequence",
      loss_type: "grpo",
      epsilon: 3e-4,
      epsilon_high: 4e-4,
    },
    name: "gspo",
    ours: { ...here, aggregation: "sequence_mean", clip_low: 3e-4, clip_high: 4e-4 },
  },
  ...(["dapo", "cispo", "grpo"] as const).map((loss_type): Case => ({
    trainer: "grpo",
    trl: {
      ...twice,
      loss_type,
      mask_truncated_completions: true,
      epsilon_high: loss_type === "cispo" ? 5 : 0.2,
      beta: 0.04,
    },
    name: loss_type,
    ours: {
      ...here,
      mask_truncated: true,
      kl_coef: 0.04,
      ...(loss_type === "cispo" && { clip_high: 4 }),
    },
    cut: loss_type === "grpo" ? "counts" : "not_counted",
  })),
  { trainer: "gmpo", trl: {}, name: "gmpo", old_is_current: true },
  { trainer: "gmpo", trl: { ...twice }, name: "gmpo" },
  {
    trainer: "gmpo",
    trl: { ...twice, epsilon: 0.1, epsilon_high: 0.2, beta: 0.04 },
    name: "gmpo",
    ours: { clip_low: 0.1, clip_high: 0.2, kl_coef: 0.04 },
  },
  { trainer: "rloo", trl: {}, name: "rloo" },
  {
    trainer: "rloo",
    trl: { beta: 0, epsilon_high: 0.4 },
    name: "rloo",
    ours: { kl_coef: 0, clip_high: 0.4 },
  },
  { trainer: "dpo", trl: {}, name: "dpo" },
  { trainer: "dpo", trl: { beta: 0.5 }, name: "dpo", ours: { beta: 0.5 } },
  {
    trainer: "dpo",
    trl: { loss_type: ["ipo"] },
    name: "dpo",
    ours: { loss: "ipo", length_normalised: true },
  },
  {
    trainer: "dpo",
    trl: { loss_type: ["sigmoid_norm"] },
    name: "dpo",
    ours: { length_normalised: true },
  },
  { trainer: "kto", trl: {}, name: "kto" },
  {
    trainer: "kto",
    trl: { beta: 0.5, desirable_weight: 1.33, undesirable_weight: 0.7 },
    name: "kto",
    ours: { beta: 0.5, desirable_weight: 1.33, undesirable_weight: 0.7 },
  },
  {
    trainer: "kto",
    trl: { loss_type: "apo_zero_unpaired", undesirable_weight: 2 },
    name: "kto",
    ours: { loss: "apo_zero_unpaired", undesirable_weight: 2 },
  },
  { trainer: "sft", trl: {}, name: "sft" },
];

/** What KTO measures, by TRL's names. */
const KTO_METRICS: Record<string, string> = {
  kl: "policy/kl_ref",
  "rewards/chosen": "reward/chosen",
  "rewards/rejected": "reward/rejected",
  "rewards/margins": "reward/margin",
  "logps/chosen": "policy/chosen_logp",
  "logps/rejected": "policy/rejected_logp",
};
/** Of each sequence: desirable, undesirable, or there to estimate the KL. */
const LABELS = [1, 0, -1, 0, 1, 0];

const GROUP = 3;
const SEEDS = [1, 2, 4];

/** Sequences in groups of one size, as TRL has them, or in pairs; none without a token. */
function sequencesOf(seed: number, { pairs }: { pairs: boolean }): EvaluatedSequence[] {
  const { sequences: random } = randomStep(seed, { pairs });
  const sequences = random.map((one, s) => ({
    ...one,
    inputs: { ...one.inputs, label: LABELS[s]! },
  }));
  return pairs ? sequences : sequences.map((one, s) => ({ ...one, group: Math.floor(s / GROUP) }));
}

/** A token column as credit has it: of sampled tokens only. */
function sampled({ mask, inputs }: EvaluatedSequence, name: string): number[] {
  return (inputs[name] as number[]).filter((_, t) => mask[t]);
}

function creditFor(
  choice: AlgorithmChoice,
  sequences: EvaluatedSequence[],
  { rewards, weights }: { rewards: (number | null)[][]; weights: number[] },
): number[] {
  const parts = weights.map((weight, k) => ({ name: `reward_${k}`, weight, paid: rewards[k]! }));
  const reward = sequences.map((_, s) =>
    parts.reduce((sum, { weight, paid }) => sum + weight * (paid[s] ?? 0), 0)
  );
  const length = sequences.map((one) => sampled(one, "logp").length);
  const { advantage } = creditOf(choice, {
    reward,
    parts,
    length,
    group: sequences.map(({ group }) => group),
    stop: sequences.map(() => "stop"),
    old_logp: sequences.map((one) => sampled(one, "old_logp")),
    ref_logp: sequences.map((one) => sampled(one, "ref_logp")),
    coef: firstCoef(choice),
  });
  return advantage as number[];
}

/** All numbers of one side within 1e-10 of the other's, relative to the largest. */
function same(actual: readonly number[], expected: readonly number[], what: string): void {
  const scale = Math.max(...expected.map(Math.abs));
  const misses = expected.map((x, i) => Math.abs(x - actual[i]!));
  ok(actual.length === expected.length && scale > 0, `${what}: nothing to compare`);
  ok(Math.max(...misses) <= 1e-10 * scale, `${what}: ours ${actual}, TRL's ${expected}`);
}

for (const { trainer, trl, name, ours = {}, old_is_current, cut, weights = [1] } of CASES) {
  const title = `${name} ${JSON.stringify(ours)} is TRL's ${trainer} ${JSON.stringify(trl)}` +
    (weights.length > 1 ? ` with weights ${weights}` : "");
  Deno.test(`under profile trl ${title}: advantages, loss and gradient`, async () => {
    const settings = { ...profileOf("trl", name)!.settings, ...ours };
    const choice = AlgorithmChoice.parse({ name, profile: "trl", ...settings });
    const { loss: expression } = expressionsOf(choice);
    const pairs = trainer === "dpo";
    for (const seed of SEEDS) {
      const sequences = sequencesOf(seed, { pairs });
      const next = uniform(seed + 50);
      const rewards = weights.map((_, k) =>
        sequences.map((_, s) => {
          const paid = Math.round(4 * next()) / 2;
          return k > 0 && k === weights.length - 1 && s === 1 ? null : paid;
        })
      );
      const stop = sequences.map((_, s) =>
        cut && s % GROUP === GROUP - 1 ? "length" as const : "stop" as const
      );
      const masked = maskedOf(choice, { stop });
      const argument = {
        sequences,
        settings: trl,
        rewards,
        weights,
        group: GROUP,
        cut: stop.map((one) => one === "length"),
      };
      const theirs = await TRL.ask(trainer, argument) as Outcome;
      const advantage = theirs.advantages && creditFor(choice, sequences, { rewards, weights });
      if (advantage) same(advantage, theirs.advantages!, "advantages");
      const step = {
        sequences: sequences.map((one, s) => ({
          ...one,
          mask: masked[s] ? one.mask.map(() => 0) : one.mask,
          inputs: { ...one.inputs, ...(advantage ? { advantage: advantage[s]! } : {}) },
        })),
      };
      const [outcomes] = await runTorch([{
        expression,
        step,
        cuts: [[[[...sequences.keys()]]]],
        old_is_current,
      }]);
      const found = outcomes![0]!;
      // A mean over completions that counts what it masks is smaller by the share that is not
      // masked.
      const share = cut === "counts" ? masked.filter((is) => !is).length / masked.length : 1;
      same([share * found.loss], [theirs.loss], "loss");
      deepStrictEqual(Object.keys(found.gradients).sort(), Object.keys(theirs.gradients).sort());
      for (const [name, ours] of theirs.metrics ? Object.entries(KTO_METRICS) : []) {
        if (ours in found.metrics) near(found.metrics[ours]!, theirs.metrics![name]!, 1e-10);
      }
      for (const [input, rows] of Object.entries(theirs.gradients)) {
        same(
          found.gradients[input]!.flat().map((slope) => share * slope),
          rows.flat(),
          `gradient of ${input}`,
        );
      }
    }
  });
}

Deno.test("every algorithm with a trl profile is compared with TRL, but the reward model", () => {
  const profiled = Object.keys(ALGORITHMS).filter((name) =>
    profileOf("trl", name) !== null && name !== "reward_model"
  );
  deepStrictEqual([...new Set(CASES.map(({ name }) => name as string))].sort(), profiled.sort());
});
