import {
  EvaluateConfig,
  evaluationName,
  evaluationPasses,
  type EvaluationSet,
  evaluationSets,
  type OnlineConfig,
} from "../configs/mod.ts";
import type { Policy, Slab, SourceConfig } from "../data/mod.ts";
import { graph, type GraphBuilder, type Ref } from "../engine/mod.ts";
import { rewardCalled, type RewardConfig, rightness, sourcesOf } from "../rewards/mod.ts";
import { openRows, type RowsConfig } from "./open_rows.ts";
import { greedyOf, samplingOf } from "./sampling.ts";
import { drawEvaluation } from "./stages/rows/draw_prompts.ts";
import { generateSlab } from "./stages/generate_slab.ts";
import { preparePolicy } from "./stages/prepare_policy.ts";
import { type Published, publishPolicy } from "./stages/publish_policy.ts";
import { scoreGroup } from "./stages/score_group.ts";
import { type Evaluation, summariseEvaluation } from "./stages/evaluation/summarise_evaluation.ts";

/** @internal */
type Evaluate = EvaluateConfig["evaluate"];

/** What an evaluation reads from a configuration. */
export type EvaluationSettings =
  & Pick<OnlineConfig, "seed" | "reward" | "sampler">
  & RowsConfig
  & {
    evaluate: Omit<Evaluate, "sets"> & Partial<Pick<Evaluate, "sets">> | null;
    data?: { eval?: SourceConfig[] };
  };

/** `label`: its name in results, `before` or `after`. */
export type EvaluationPlan = EvaluationSettings & { label: string };

/** The rows of a set, as slabs. */
type DrawnSet = { set: EvaluationSet; drawn: Ref<Slab[]> };

/**
 * Which moment is evaluated. `round`: the round, whose number is part of the name; absent: `label`
 * alone. `series`: its metrics have the same names in every round.
 */
export type Moment = { label: string; round?: Ref<number>; series?: true };

/**
 * The evaluations that a configuration requests for each of its sets: greedy, sampled, both, or
 * none.
 */
export function evaluations(
  g: GraphBuilder,
  plan: EvaluationPlan,
  policy: Ref<Policy>,
): Ref<Evaluation>[] {
  if (plan.evaluate === null) return [];
  const published = g.stage(publishPolicy, { policy });
  return evaluationSets(plan).flatMap((set) => {
    const drawn = drawnSet(g, plan, { set, model_path: policy.field("model_path") });
    return evaluationsOf(g, plan, { ...drawn, published, moment: plan });
  });
}

/** Opens the rows of a set and splits them into slabs. */
export function drawnSet(
  g: GraphBuilder,
  plan: EvaluationSettings,
  { set, model_path }: { set: EvaluationSet; model_path: Ref<string> },
): DrawnSet {
  const { problems: count } = settingsOf(plan, set).evaluate!;
  const data = openRows(g, plan, { split: set.split, use: "prompt", model_path });
  const slabs = { slab_groups: null, samplers: plan.sampler.replicas };
  return { set, drawn: g.stage(drawEvaluation, { data, count, slabs }) };
}

type Evaluating = DrawnSet & { published: Ref<Published>; moment: Moment };

/** Every pass over the rows of one set. */
export function evaluationsOf(
  g: GraphBuilder,
  plan: EvaluationSettings,
  { set, drawn, published, moment }: Evaluating,
): Ref<Evaluation>[] {
  const { evaluate, reward, sampler, seed } = settingsOf(plan, set);
  const { failed_fraction_max, right_at, majority } = evaluate!;
  const right = rightness(appliedTo(set, reward), right_at);
  const decides = majority ? rewardCalled(reward, right.by) : undefined;
  return evaluationPasses(evaluate!, set).map((pass) => {
    const { samples_per_prompt } = pass;
    const sampling = pass.label === "greedy" ? greedyOf(sampler) : samplingOf(sampler);
    const work = { published, samples_per_prompt, sampling, seed };
    const groups = g.flat(g.map(generateSlab, drawn, work));
    const scored = g.map(scoreGroup, groups, { rewards: reward, on_failed_sample: "drop_group" });
    return g.stage(summariseEvaluation, {
      name: evaluationName(set.name, `${moment.label}_${pass.label}`),
      scored,
      greedy: sampling.temperature === 0,
      correct_by: right.by,
      right_at: right.at,
      says_right: right.says,
      failed_fraction_max,
      answers_by: samples_per_prompt > 1 ? decides : undefined,
      round: moment.round,
      metrics_under: moment.series ? pass.metrics : undefined,
    });
  });
}

/** The rewards that apply to some row of a set: one of them decides what is right there. */
function appliedTo({ sources }: EvaluationSet, rewards: RewardConfig[]): RewardConfig[] {
  const applied = rewards.filter((reward) => {
    const sourceNames = sourcesOf(reward);
    return sourceNames === undefined || sources.some(({ name = "" }) => sourceNames.includes(name));
  });
  return applied.length === 0 ? rewards : applied;
}

/** What holds for a set: what it says itself, or else the evaluation. */
function settingsOf(plan: EvaluationSettings, { settings }: EvaluationSet): EvaluationSettings {
  if (settings === undefined) return plan;
  const { problems, sampling = {}, reward } = settings;
  const present = <T extends object>(fields: T) =>
    Object.fromEntries(
      Object.entries(fields).filter(([, value]) => value !== null && value !== undefined),
    );
  return {
    ...plan,
    reward: reward ?? plan.reward,
    sampler: { ...plan.sampler, ...present(sampling) },
    evaluate: { ...plan.evaluate!, ...present({ problems }) },
  };
}

/** Evaluation alone. */
export const evaluate = graph("evaluate", EvaluateConfig, (g, config) => {
  const policy = g.stage(preparePolicy, {
    model_path: config.model.path,
    optimizer: config.trainer.optimizer,
  });
  return { policy, evaluations: evaluations(g, { ...config, label: "eval" }, policy) };
});
