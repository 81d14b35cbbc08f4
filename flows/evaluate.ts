import {
  EvaluateConfig,
  evaluationName,
  type EvaluationSet,
  evaluationSets,
  type OnlineConfig,
} from "../configs/mod.ts";
import type { Policy, Sampling, SourceConfig } from "../data/mod.ts";
import { graph, type GraphBuilder, type Ref } from "../engine/mod.ts";
import { rightness } from "../rewards/mod.ts";
import { openRows, type RowsConfig } from "./open_rows.ts";
import { greedyOf, samplingOf } from "./sampling.ts";
import { drawEvaluation } from "./stages/draw_prompts.ts";
import { generateSlab } from "./stages/generate_slab.ts";
import { preparePolicy } from "./stages/prepare_policy.ts";
import { type Published, publishPolicy } from "./stages/publish_policy.ts";
import { scoreGroup } from "./stages/score_group.ts";
import { type Evaluation, summariseEvaluation } from "./stages/summarise_evaluation.ts";

/**
 * What an evaluation reads of a configuration. `label`: what it is called in results, `before` or
 * `after`.
 */
export type EvaluationPlan =
  & Pick<OnlineConfig, "seed" | "reward" | "sampler">
  & Pick<OnlineConfig, "evaluate">
  & RowsConfig
  & { data?: { eval?: SourceConfig[] }; label: string };

type Pass = { name: string; samples_per_prompt: number; sampling: Sampling };

/**
 * The evaluations that a configuration asks for, of each of its sets: greedy, sampled, both, or
 * none.
 */
export function evaluations(
  g: GraphBuilder,
  plan: EvaluationPlan,
  policy: Ref<Policy>,
): Ref<Evaluation>[] {
  if (plan.evaluate === null) return [];
  const { greedy, samples_per_prompt } = plan.evaluate;
  const passes: Pass[] = [];
  if (greedy) {
    passes.push({
      name: `${plan.label}_greedy`,
      samples_per_prompt: 1,
      sampling: greedyOf(plan.sampler),
    });
  }
  if (samples_per_prompt > 1 || !greedy) {
    passes.push({
      name: `${plan.label}_sampled`,
      samples_per_prompt,
      sampling: samplingOf(plan.sampler),
    });
  }
  const published = g.stage(publishPolicy, { policy });
  return evaluationSets(plan).flatMap((set) =>
    evaluationsOf(g, plan, { set, policy, published, passes })
  );
}

type Evaluating = {
  set: EvaluationSet;
  policy: Ref<Policy>;
  published: Ref<Published>;
  passes: Pass[];
};

/** Every pass over the rows of one set. */
function evaluationsOf(
  g: GraphBuilder,
  plan: EvaluationPlan,
  { set, policy, published, passes }: Evaluating,
): Ref<Evaluation>[] {
  const { problems: count, failed_fraction_max, right_at } = plan.evaluate!;
  const right = rightness(plan.reward, right_at);
  const data = openRows(g, plan, {
    split: set.split,
    use: "prompt",
    model_path: policy.field("model_path"),
  });
  const slabs = { slab_groups: null, samplers: plan.sampler.replicas };
  const drawn = g.stage(drawEvaluation, { data, count, slabs });
  return passes.map(({ name, samples_per_prompt, sampling }) => {
    const work = { published, samples_per_prompt, sampling, seed: plan.seed };
    const groups = g.flat(g.map(generateSlab, drawn, work));
    const scored = g.map(scoreGroup, groups, {
      rewards: plan.reward,
      on_failed_sample: "drop_group",
    });
    return g.stage(summariseEvaluation, {
      name: evaluationName(set.name, name),
      scored,
      greedy: sampling.temperature === 0,
      correct_by: right.by,
      ...(right.at !== 1 && { right_at: right.at }),
      ...(right.says && { says_right: true as const }),
      ...(failed_fraction_max < 1 && { failed_fraction_max }),
    });
  });
}

/** Evaluation alone. */
export const evaluate = graph("evaluate", EvaluateConfig, (g, config) => {
  const policy = g.stage(preparePolicy, {
    model_path: config.model.path,
    optimizer: config.trainer.optimizer,
  });
  return { policy, evaluations: evaluations(g, { ...config, label: "eval" }, policy) };
});
