/**
 * How token rewards become advantages, shared by several algorithms. N sequences of T sampled
 * tokens each, ragged.
 */
import type { CreditNeeds, CreditRound } from "../algorithm.ts";

/**
 * The reward of each token: the sequence's reward on its last token, plus the environment's token
 * rewards, minus the KL. Sequences without a token have none. [N][T]
 */
export function tokenReward(
  { reward, token_reward, length }: CreditRound,
  kl_reward: number[][],
): number[][] {
  return length.map((tokens, i) =>
    Array.from({ length: tokens }, (_, t) => {
      const last = t === tokens - 1 ? reward[i]! : 0;
      return last + (token_reward?.[i]?.[t] ?? 0) + kl_reward[i]![t]!;
    })
  );
}

/** The reward of each sequence: its own and its tokens' rewards, minus the KL. [N] */
export function sequenceReward(
  { reward, token_reward }: CreditRound,
  kl_reward: number[][],
): number[] {
  return reward.map((earned, i) => earned + sum(token_reward?.[i] ?? []) + sum(kl_reward[i]!));
}

/** Σ_k gamma^k r_{t+k}: the reward of the token itself and of all later ones. [N][T] -> [N][T] */
export function rewardToGo(rewards: readonly number[][], gamma: number): number[][] {
  return rewards.map((row) => {
    let after = 0;
    return row.map((_, t) => after = row.at(-1 - t)! + gamma * after).reverse();
  });
}

/** @internal */
type Discounts = { gamma: number; lambda: number };

/**
 * Generalised advantage estimation. Schulman et al. 2016, arXiv:1506.02438, eq. 16. A sequence that
 * stopped has value 0 after its last token; one that was cut has `bootstrap`, because it would have
 * continued.
 *
 *     Δ_t = r_t + gamma · V_{t+1} − V_t;   A_t = Δ_t + gamma · lambda · A_{t+1};   returns = A + V
 */
export function gae(
  rewards: readonly number[][],
  { values, bootstrap, stop }:
    & Pick<CreditRound, "stop">
    & Pick<CreditNeeds, "values" | "bootstrap">,
  { gamma, lambda }: Discounts,
): { advantage: number[][]; returns: number[][] } {
  const advantage = rewards.map((row, i) => {
    let next = stop[i] === "stop" ? 0 : bootstrap[i]!;
    let after = 0;
    const backwards = row.map((_, k) => {
      const t = row.length - 1 - k;
      const value = values[i]![t]!;
      after = row[t]! + gamma * next - value + gamma * lambda * after;
      next = value;
      return after;
    });
    return backwards.reverse();
  });
  return { advantage, returns: advantage.map((row, i) => row.map((a, t) => a + values[i]![t]!)) };
}

const WHITEN_EPSILON = 1e-8;

/**
 * (advantage − mean) ÷ (standard deviation + 1e-8), over all sampled tokens of the round: a
 * sequence's one advantage counts once for each of its tokens. All zeros if all are equal. [N][T]
 * or [N] -> the same
 */
export function whiten<A extends number[] | number[][]>(
  advantage: A,
  length: readonly number[],
): A {
  const rows: [number | number[], number][] = advantage.map((
    value,
    i,
  ) => [value, Array.isArray(value) ? 1 : length[i]!]);
  const weighted = rows.flatMap(([value, weight]) =>
    [value].flat().map((x) => [x, weight] as const)
  )
    .filter(([, weight]) => weight > 0);
  const count = sum(weighted.map(([, weight]) => weight));
  if (weighted.every(([x]) => x === weighted[0]![0])) return each(advantage, () => 0);
  const mean = sum(weighted.map(([x, weight]) => x * weight)) / count;
  const deviation = Math.sqrt(sum(weighted.map(([x, weight]) => (x - mean) ** 2 * weight)) / count);
  return each(advantage, (x) => (x - mean) / (deviation + WHITEN_EPSILON));
}

function each<A extends number[] | number[][]>(values: A, change: (x: number) => number): A {
  return values.map((value) => (Array.isArray(value) ? value.map(change) : change(value))) as A;
}

/**
 * 1 − Var(returns − values) ÷ Var(returns): 1 if the value model explains everything, 0 if it
 * explains nothing.
 */
export function explainedVariance(
  returns: readonly number[][],
  values: readonly number[][],
): number {
  const all = returns.flat();
  const residual = variance(
    values.flatMap((row, i) => row.map((value, t) => returns[i]![t]! - value)),
  );
  const whole = variance(all);
  return whole === 0 ? 0 : 1 - residual / whole;
}

function variance(values: readonly number[]): number {
  const mean = sum(values) / Math.max(values.length, 1);
  return sum(values.map((value) => (value - mean) ** 2)) / Math.max(values.length, 1);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
