/**
 * What a reward is compared with: the samples of its prompt, or of the round. Equal rewards leave
 * exactly 0, whatever a mean rounds to: such a group never looks as if it had something to teach.
 */

/** (reward − group's mean) ÷ (group's n − 1 standard deviation + epsilon). [N], [N] -> [N] */
export function groupZscore(reward: readonly number[], group: readonly number[], epsilon: number): number[] {
  return perGroup(reward, group, (rewards) => {
    const centered = center(rewards);
    if (centered.every((value) => value === 0)) return centered;
    const deviation = Math.sqrt(sum(centered.map((value) => value * value)) / (rewards.length - 1));
    return centered.map((value) => value / (deviation + epsilon));
  });
}

/** reward − its group's mean; a group of one has advantage 0. [N], [N] -> [N] */
export function groupCenter(reward: readonly number[], group: readonly number[]): number[] {
  return perGroup(reward, group, center);
}

/** reward − the mean of the others in its group; a group of one has advantage 0. [N], [N] -> [N] */
export function leaveOneOut(reward: readonly number[], group: readonly number[]): number[] {
  return perGroup(reward, group, (rewards) => {
    const scale = rewards.length / Math.max(rewards.length - 1, 1);
    return center(rewards).map((value) => value * scale);
  });
}

/** The mean of the whole round, exact where all are equal. [N] -> a number */
export function roundMean(reward: readonly number[]): number {
  return reward.every((value) => value === reward[0]) ? reward[0] ?? 0 : sum(reward) / reward.length;
}

function center(values: readonly number[]): number[] {
  const mean = roundMean(values);
  return values.map((value) => value - mean);
}

function perGroup(reward: readonly number[], group: readonly number[], assign: (own: number[]) => number[]): number[] {
  if (reward.length !== group.length) {
    throw new RangeError(
      `Cannot assign credit because ${reward.length} rewards came with ${group.length} group numbers`,
    );
  }
  const advantage = new Array<number>(reward.length).fill(0);
  for (const places of Map.groupBy(reward.keys(), (i) => group[i]!).values()) {
    const values = assign(places.map((i) => reward[i]!));
    for (const [k, i] of places.entries()) advantage[i] = values[k]!;
  }
  return advantage;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
