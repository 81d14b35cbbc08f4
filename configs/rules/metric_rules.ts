/** The metrics that checkpoints and early stops are judged by exist: a wrong name would pass. */
import { expressionsOf, inPython } from "../../algs/mod.ts";
import {
  answerReader,
  labelOf,
  rewardCalled,
  type RewardConfig,
  rightness,
} from "../../rewards/mod.ts";
import {
  evaluationPasses,
  type EvaluationSet,
  evaluationSets,
  metricsPrefix,
} from "../evaluation_sets.ts";
import type { Issue } from "../problems/issue_text.ts";
import type { Blocks } from "./rule_blocks.ts";
import { didYouMean } from "../problems/suggest.ts";

const EVALUATION = "eval/";

/**
 * A metric as it is recorded: `pass@8` and `pass^8`, as people write them, are `pass_at_8` and
 * `pass_hat_8`.
 */
export function metricName(written: string): string {
  return written.replaceAll("@", "_at_").replaceAll("^", "_hat_");
}

export const METRIC_RULES: ((blocks: Blocks) => Issue[])[] = [
  metricsExist,
  bestIsSaved,
];

/** A stop is judged by evaluations alone: a round without one decides nothing. */
function metricsExist(blocks: Blocks): Issue[] {
  const { stop, checkpoints } = blocks;
  const best = checkpoints?.keep_best?.metric;
  const path = ["checkpoints", "keep_best", "metric"];
  const bestIssues = best === undefined
    ? []
    : best.startsWith(EVALUATION)
    ? isEvaluated(blocks, { metric: best, path })
    : isTrained(blocks, { metric: best, path });
  return [
    ...bestIssues,
    ...(stop ? isEvaluated(blocks, { metric: stop.metric, path: ["stop", "metric"] }) : []),
  ];
}

type Named = { metric: string; path: Issue["path"] };

function isTrained(blocks: Blocks, { metric, path }: Named): Issue[] {
  const known = trainingMetrics(blocks);
  const wanted = metricName(metric);
  if (
    known === null ||
    known.some((one) => one.endsWith("*") ? wanted.startsWith(one.slice(0, -1)) : wanted === one)
  ) return [];
  return [{ path, message: unknown(metric, [...known, ...evaluationMetrics(blocks)]) }];
}

/** A checkpoint without the metric is never the best. */
function bestIsSaved({ checkpoints, evaluate }: Blocks): Issue[] {
  const { keep_best = null, every_rounds: saved = 1 } = checkpoints ?? {};
  const evaluated = evaluate?.every_rounds ?? null;
  if (!keep_best?.metric.startsWith(EVALUATION) || evaluated === null) return [];
  if (saved % evaluated === 0) return [];
  return [{
    path: ["checkpoints", "every_rounds"],
    message: `is ${saved}; keep_best compares checkpoints of evaluated rounds: use a multiple of ` +
      `evaluate.every_rounds (${evaluated})`,
  }];
}

function isEvaluated(blocks: Blocks, { metric, path }: Named): Issue[] {
  if ((blocks.evaluate?.every_rounds ?? null) === null) {
    const message = `is ${metric}, which rounds have only if they are evaluated: set ` +
      "evaluate.every_rounds";
    return [{ path, message }];
  }
  const known = evaluationMetrics(blocks);
  return known.includes(metricName(metric).replace(/_(low|high)$/, ""))
    ? []
    : [{ path, message: unknown(metric, known) }];
}

function unknown(metric: string, known: string[]): string {
  return `is ${metric}, which no round has${didYouMean(metricName(metric), known)}; its metrics ` +
    `are ${known.join(", ")}`;
}

/** The metrics of the evaluations between rounds. */
function evaluationMetrics(blocks: Blocks): string[] {
  const { flow, evaluate } = blocks;
  if (!evaluate || (evaluate.every_rounds ?? null) === null) return [];
  return evaluationSets(blocks).flatMap((set) => {
    if (flow === "preference") {
      const under = set.name === null ? "eval" : `eval/${set.name}`;
      return [`${under}/pair_accuracy`, `${under}/pair_margin`];
    }
    const reward = set.settings?.reward ?? blocks.reward ?? [];
    return [
      ...(evaluate.loss ? [`${metricsPrefix(set)}/loss`] : []),
      ...(reward.length === 0 ? [] : sampledMetrics(evaluate, { set, reward })),
    ];
  });
}

function sampledMetrics(
  evaluate: NonNullable<Blocks["evaluate"]>,
  { set, reward }: { set: EvaluationSet; reward: RewardConfig[] },
): string[] {
  const { right_at = null, majority = false } = evaluate;
  const right = rightness(reward, right_at);
  const decides = rewardCalled(reward, right.by);
  return evaluationPasses(evaluate, set).flatMap(({ metrics: under, samples_per_prompt: n }) => {
    const upToN = Array.from({ length: n }, (_, i) => i + 1);
    const passes = [
      ...upToN.map((k) => `pass_at_${k}`),
      ...upToN.slice(1).map((k) => `pass_hat_${k}`),
    ];
    const votes = majority && n > 1 && decides && answerReader(decides) !== null;
    const names = [
      ...(right.by === null ? [] : [`avg_at_${n}`, ...passes, "right"]),
      ...(votes ? [`maj_at_${n}`] : []),
      "mean_reward",
      "graded",
      "failed",
      "ungraded",
    ];
    return names.map((name) => `${under}/${name}`);
  });
}

/** The metrics of training, `*` for any end; null: code in Python may report others. */
function trainingMetrics({ flow, algorithm, reward = [] }: Blocks): string[] | null {
  if (algorithm === undefined || inPython(algorithm)) return null;
  const { loss, value_loss } = expressionsOf(algorithm);
  const rewards = flow === "online" || flow === "quickstart"
    ? [
      "reward/mean",
      "reward/std",
      "reward/zero_std_frac",
      ...reward.map((one) => `reward/${labelOf(one)}/*`),
      "completions/*",
      "policy/*", // Of credit, too.
      "coef/*",
    ]
    : [];
  return [
    ...rewards,
    "policy/loss",
    "optim/grad_norm",
    "optim/lr",
    "perf/*",
    "time/*",
    ...Object.keys(loss.metrics),
    ...(value_loss ? ["value/*", "optim/value_grad_norm", "optim/value_lr"] : []),
  ];
}
