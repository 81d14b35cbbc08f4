import type { Evaluation, LossEvaluation, PairEvaluation } from "../../flows/mod.ts";
import { UNGRADED } from "../../rollouts/mod.ts";
import { fixed } from "./output.ts";

/**
 * A recorded evaluation in one line: what is right, what failed, what was not graded, and the mean
 * reward.
 */
export function evaluationText(recorded: Evaluation | PairEvaluation | LossEvaluation): string {
  if ("rows" in recorded) return `loss ${fixed(recorded.loss, 4)} over ${recorded.rows} rows`;
  if ("pairs" in recorded) {
    const { pair_accuracy, pairs, completions, pair_margin } = recorded;
    const of = completions === undefined ? `${pairs} pairs` : `${completions} completions`;
    return `${fixed(pair_accuracy, 3)} right of ${of}, margin ${fixed(pair_margin, 3)}`;
  }
  const {
    graded,
    right,
    undecided = 0,
    failed,
    ungraded,
    failures,
    mean_reward,
    avg_at_k,
    maj_at_k = null,
    pass_at,
    pass_hat,
    samples_per_problem,
    intervals = {},
  } = recorded;
  const reward = `mean reward ${fixed(mean_reward, 3)}`;
  const bounds = intervals[avg_at_k === null ? "mean_reward" : "avg_at_k"];
  const reasons = Object.entries(failures).filter(([reason]) => reason !== UNGRADED).map((
    [why, n],
  ) => `${why} ${n}`);
  const parts = [
    avg_at_k === null
      ? `no reward defines right, ${graded} graded`
      : `${fixed(avg_at_k, 3)} right (${right} of ${graded - undecided})`,
    ...(bounds ? [`95 % from ${fixed(bounds[0], 3)} to ${fixed(bounds[1], 3)}`] : []),
    `failed ${failed}${reasons.length === 0 ? "" : ` (${reasons.join(", ")})`}`,
    `ungraded ${ungraded}`,
    ...(undecided === 0 ? [] : [`undecided ${undecided}`]),
    reward,
    ...shownPasses("pass@", pass_at ?? []),
    ...shownPasses("pass^", pass_hat ?? []).slice(1),
    ...(maj_at_k === null ? [] : [`maj@${samples_per_problem} ${fixed(maj_at_k, 3)}`]),
  ];
  return parts.join(", ");
}

/** All up to 8; beyond, powers of two and the last: a line has no room for all. */
function shownPasses(name: string, values: readonly number[]): string[] {
  const last = values.length;
  const isShown = (k: number) => last > 1 && (last <= 8 || k === last || (k & (k - 1)) === 0);
  return values.flatMap((value, i) => isShown(i + 1) ? [`${name}${i + 1} ${fixed(value, 3)}`] : []);
}
