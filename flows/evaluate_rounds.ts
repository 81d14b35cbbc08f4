/** Evaluation before, between and after the rounds of training. */
import {
  evaluationName,
  evaluationSets,
  metricsPrefix,
  type SupervisedConfig,
} from "../configs/mod.ts";
import type { Policy } from "../data/mod.ts";
import type { GraphBuilder, Ref } from "../engine/mod.ts";
import { drawnSet, type EvaluationSettings, evaluationsOf, type Moment } from "./evaluate.ts";
import type { Opened } from "./open_algorithm.ts";
import { openRows } from "./open_rows.ts";
import { awaitEvaluations, evaluationDue } from "./stages/evaluation/evaluate_round.ts";
import { drawEvaluationRows } from "./stages/rows/draw_rows.ts";
import { evaluateLoss } from "./stages/evaluation/evaluate_loss.ts";
import { publishPolicy } from "./stages/publish_policy.ts";

/** Any result of an evaluation. */
type Result = Ref<{ name: string }>;

/**
 * How a policy is measured at a moment of training. Returns the policy to continue
 * with, and the results.
 */
export type Measure = (
  g: GraphBuilder,
  at: { policy: Ref<Policy>; moment: Moment },
) => { policy: Ref<Policy>; evaluations: Result[] };

/** Samples and scores every set. Its rows are opened here, once for all moments. */
export function sampledMeasure(
  g: GraphBuilder,
  plan: EvaluationSettings,
  start: Ref<Policy>,
): Measure {
  const model_path = start.field("model_path");
  const sets = evaluationSets(plan).map((set) => drawnSet(g, plan, { set, model_path }));
  return (here, { policy, moment }) => {
    const published = here.stage(publishPolicy, { policy });
    const evaluations = sets.flatMap((set) =>
      evaluationsOf(here, plan, { ...set, published, moment })
    );
    return { policy, evaluations };
  };
}

/** The loss of training on the completions of every set, with the trainer. */
export function lossMeasure(
  g: GraphBuilder,
  config: EvaluationSettings & Pick<SupervisedConfig, "algorithm" | "trainer"> & { opened: Opened },
  start: Ref<Policy>,
): Measure {
  const { algorithm, opened, trainer: { micro_batch_tokens_max } } = config;
  const work = { algorithm, micro_batch_tokens_max, opened };
  const model_path = start.field("model_path");
  const sets = evaluationSets(config).map((set) => {
    const data = openRows(g, config, { split: set.split, use: "completion", model_path });
    const count = set.settings?.problems ?? config.evaluate!.problems;
    return { set, batch: g.stage(drawEvaluationRows, { data, count }) };
  });
  return (here, { policy: first, moment: { label, round } }) => {
    let policy = first;
    const evaluations = sets.map(({ set, batch }): Result => {
      const evaluation = here.stage(evaluateLoss, {
        name: evaluationName(set.name, `${label}_loss`),
        round,
        metrics_under: metricsPrefix(set),
        batch,
        policy,
        ...work,
      });
      policy = evaluation.field("policy");
      return evaluation.field("evaluation");
    });
    return { policy, evaluations };
  };
}

/** One measure after the other. */
export function bothMeasures(first: Measure, second: Measure): Measure {
  return (g, { policy, moment }) => {
    const one = first(g, { policy, moment });
    const two = second(g, { policy: one.policy, moment });
    return { policy: two.policy, evaluations: [...one.evaluations, ...two.evaluations] };
  };
}

/** Evaluates a round's policy if that is due, between training and the checkpoint. */
export type RoundEvaluation = (
  r: GraphBuilder,
  trained: { policy: Ref<Policy>; round: Ref<number> },
) => Ref<Policy>;

/** What is measured around rounds, when, and what they start with. */
type Around = { measure: Measure; every_rounds?: number; start: Ref<Policy> };

/**
 * Evaluates `start`, unless the rounds continue another run's, which did. `start`: the same policy,
 * for the rounds to start with; `evaluated`: what a round does between training and its checkpoint;
 * `after`: what remains to be evaluated once the rounds are over.
 */
export function aroundRounds(
  g: GraphBuilder,
  { rounds: last, start_from }: Pick<SupervisedConfig, "rounds" | "start_from">,
  { measure, every_rounds, start }: Around,
): {
  start: Ref<Policy>;
  before: Result[];
  evaluated: RoundEvaluation | undefined;
  after(policy: Ref<Policy>): Result[];
} {
  const first = start_from === undefined
    ? measure(g, { policy: start, moment: { label: "before", series: true } })
    : undefined;
  const evaluated = every_rounds === undefined
    ? undefined
    : roundEvaluation(measure, { every_rounds, last });
  return {
    start: first ? g.stage(awaitEvaluations, first) : start,
    before: first?.evaluations ?? [],
    evaluated,
    // Otherwise the last round was evaluated.
    after: (policy) =>
      evaluated ? [] : measure(g, { policy, moment: { label: "after", series: true } }).evaluations,
  };
}

/** Every `every_rounds` rounds and after the last. */
export function roundEvaluation(
  measure: Measure,
  { every_rounds, last }: { every_rounds: number; last: number },
): RoundEvaluation {
  return (r, { policy, round }) => {
    const due = r.stage(evaluationDue, { round, every_rounds, last });
    const moment: Moment = { label: "round_{round}", round, series: true };
    const evaluated = (g: GraphBuilder) =>
      g.stage(awaitEvaluations, measure(g, { policy, moment }));
    return r.when(due, evaluated, () => policy, { as: "evaluate" });
  };
}
