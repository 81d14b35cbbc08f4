import type { Evaluation, PairEvaluation } from "../flows/mod.ts";

/** A recorded evaluation in one line: what is right, what failed, what was not graded, and the mean reward. */
export function evaluationText(recorded: Evaluation | PairEvaluation): string {
  if ("pairs" in recorded) {
    const { pair_accuracy, pairs, pair_margin } = recorded;
    return `${pair_accuracy.toFixed(3)} right of ${pairs} pairs, margin ${pair_margin.toFixed(3)}`;
  }
  const { problems, graded, right, failed, ungraded, failures = {}, mean_reward, avg_at_k, pass_at } = recorded;
  const reward = `mean reward ${mean_reward.toFixed(3)}`;
  if (graded === undefined) return `${avg_at_k!.toFixed(3)} right of ${problems - failed} problems, ${reward}`;
  const reasons = Object.entries(failures).filter(([reason]) => reason !== "reward_none").map(([why, n]) =>
    `${why} ${n}`
  );
  const parts = [
    avg_at_k === null
      ? `no reward says what is right, ${graded} graded`
      : `${avg_at_k.toFixed(3)} right (${right} of ${graded})`,
    `failed ${failed}${reasons.length === 0 ? "" : ` (${reasons.join(", ")})`}`,
    `ungraded ${ungraded}`,
    reward,
    ...(pass_at ?? []).flatMap((value, i) =>
      isShown(i + 1, pass_at!.length) ? [`pass@${i + 1} ${value.toFixed(3)}`] : []
    ),
  ];
  return parts.join(", ");
}

/** Powers of two and the last: a line has no room for all. */
function isShown(k: number, last: number): boolean {
  return last > 1 && (k === last || (k & (k - 1)) === 0);
}
