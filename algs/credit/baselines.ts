/**
 * What a reward is compared with: the samples of its prompt, or of the round. Equal rewards give
 * exactly 0, even if their mean is rounded, so such a group never appears to have a signal.
 */

/** One number per sample. [N] */
export type Column = readonly number[];

/** (reward − group's mean) ÷ (group's n − 1 standard deviation + epsilon). [N], [N] -> [N] */
export function groupZscore(reward: Column, group: Column, epsilon: number): number[] {
  return perGroup(reward, group, (rewards) => {
    const centered = center(rewards);
    if (centered.every((value) => value === 0)) return centered;
    const deviation = Math.sqrt(sum(centered.map((value) => value * value)) / (rewards.length - 1));
    return centered.map((value) => value / (deviation + epsilon));
  });
}

/** reward − its group's mean; a group of one has advantage 0. [N], [N] -> [N] */
export function groupCenter(reward: Column, group: Column): number[] {
  return perGroup(reward, group, center);
}

/** reward − the mean of the others in its group; a group of one has advantage 0. [N], [N] -> [N] */
export function leaveOneOut(reward: Column, group: Column): number[] {
  return perGroup(reward, group, (rewards) => {
    const scale = rewards.length / Math.max(rewards.length - 1, 1);
    return center(rewards).map((value) => value * scale);
  });
}

/** The mean of the whole round, exact if all are equal. [N] -> a number */
export function roundMean(reward: Column): number {
  const [first = 0] = reward;
  return reward.every((value) => value === first) ? first : sum(reward) / reward.length;
}

function center(values: Column): number[] {
  const mean = roundMean(values);
  return values.map((value) => value - mean);
}

function perGroup(reward: Column, group: Column, of: (rewards: number[]) => number[]): number[] {
  const [n, m] = [reward.length, group.length];
  if (n !== m) throw new RangeError(`Cannot assign credit because ${n} rewards have ${m} groups`);
  const advantage = new Array<number>(reward.length).fill(0);
  for (const places of Map.groupBy(reward.keys(), (i) => group[i]!).values()) {
    const values = of(places.map((i) => reward[i]!));
    for (const [k, i] of places.entries()) advantage[i] = values[k]!;
  }
  return advantage;
}

function sum(values: Column): number {
  return values.reduce((total, value) => total + value, 0);
}
