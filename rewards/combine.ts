/** A sample's reward: the sum of weight x score. The scores stay apart for metrics. */
export function combineScores(scores: readonly { name: string; weight: number; score: number }[]): {
  reward: number;
  parts: Record<string, number>;
} {
  return {
    reward: scores.reduce((sum, { weight, score }) => sum + weight * score, 0),
    parts: Object.fromEntries(scores.map(({ name, score }) => [name, score])),
  };
}
