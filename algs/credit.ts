/**
 * (reward − its group's mean) ÷ (its group's standard deviation + epsilon), with the n − 1 standard deviation. A group of
 * one, or of equal rewards, has advantage 0. [N], [N] -> [N]
 */
export function groupZscore(reward: readonly number[], group: readonly number[], epsilon: number): number[] {
  return perGroup(reward, group, (rewards) => {
    const centered = center(rewards);
    if (centered.every((value) => value === 0)) return centered;
    const squares = centered.reduce((sum, value) => sum + value * value, 0);
    const deviation = Math.sqrt(squares / (rewards.length - 1));
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

/** Exactly 0 where all are equal: a rounded mean must not turn a group without signal into one with. */
function center(values: readonly number[]): number[] {
  if (values.every((value) => value === values[0])) return values.map(() => 0);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return values.map((value) => value - mean);
}

function perGroup(
  reward: readonly number[],
  group: readonly number[],
  assign: (rewards: number[]) => number[],
): number[] {
  if (reward.length !== group.length) {
    throw new RangeError(`Cannot assign credit as ${reward.length} rewards came with ${group.length} group numbers`);
  }
  const members = Map.groupBy(reward.keys(), (i) => group[i]!);
  const advantage = new Array<number>(reward.length).fill(0);
  for (const places of members.values()) {
    const values = assign(places.map((i) => reward[i]!));
    for (const [k, i] of places.entries()) advantage[i] = values[k]!;
  }
  return advantage;
}
