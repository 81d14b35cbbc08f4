/**
 * What OpenRLHF, verl and FeynRL compute, restated from their sources (the commits are in
 * `algs/profiles/profiles.ts`): advantages and the gradient of the loss of one optimizer step, by hand, in
 * float64. Nothing of ours is used. A peer's own words stand beside what is theirs alone.
 */

/**
 * N completions in groups that follow each other, each of the same size; T of each are its sampled
 * tokens, maybe none.
 */
export type PeerRound = {
  group_size: number;
  reward: number[]; // [N]
  logp: number[][]; // [N][T], as all below
  old_logp: number[][];
  ref_logp: number[][];
  values: number[][];
  old_values: number[][];
  kl_coef: number;
};

type PeerGradients = { advantage: number[][]; logp: number[][]; values?: number[][] };
type Peer = {
  compute(round: PeerRound): PeerGradients;
  /** How many times ours its advantages are, where the profile says that they are not equal. */
  advantage_factor?(round: PeerRound): number;
  /** The same of the gradient. */
  gradient_factor?(round: PeerRound): number;
};

const sum = (all: readonly number[]) => all.reduce((total, x) => total + x, 0);
const mean = (all: readonly number[]) => sum(all) / all.length;
const clamp = (x: number, low: number, high: number) => Math.min(Math.max(x, low), high);
const deviation = (all: readonly number[]) =>
  Math.sqrt(sum(all.map((x) => (x - mean(all)) ** 2)) / (all.length - 1));
const tokens = ({ logp }: PeerRound) => sum(logp.map(({ length }) => length));
const filled = ({ logp }: PeerRound) => logp.filter(({ length }) => length > 0).length;

/** What becomes of a group's rewards. [N] -> [N] */
function perGroup(
  { reward, group_size }: PeerRound,
  change: (group: number[]) => number[],
): number[] {
  const groups = Array.from(
    { length: reward.length / group_size },
    (_, g) => reward.slice(g * group_size),
  );
  return groups.flatMap((from) => change(from.slice(0, group_size)));
}

const centered = (group: number[]) => group.map((r) => r - mean(group));
const zscore = (epsilon: number) => (group: number[]) =>
  centered(group).map((r) => r / (deviation(group) + epsilon));
const spread = (round: PeerRound, advantage: number[]) =>
  round.logp.map((row, i) => row.map(() => advantage[i]!));

/** The sum of what comes from a token on. */
const toGo = (row: readonly number[]) => row.map((_, t) => sum(row.slice(t)));

type Whitening = { bessel?: boolean; scale: (variance: number) => number };

/** Over all tokens of the round. */
function whitened(rows: number[][], { bessel = false, scale }: Whitening): number[][] {
  const all = rows.flat();
  const variance = sum(all.map((x) => (x - mean(all)) ** 2)) / (all.length - (bessel ? 1 : 0));
  return rows.map((row) => row.map((x) => (x - mean(all)) * scale(variance)));
}

/** With gamma and lambda 1, and nothing after the end: what comes, less the value. */
const advantageOf = (rewards: number[][], values: number[][]) =>
  rewards.map((row, i) => toGo(row).map((later, t) => later - values[i]![t]!));

/**
 * d value loss ÷ d value of ½ max((V − return)², (V_old + clip(V − V_old) − return)²), a mean over
 * tokens.
 */
function valueGradient(round: PeerRound, advantage: number[][], clip: number): number[][] {
  const { values, old_values } = round;
  return values.map((row, i) =>
    row.map((value, t) => {
      const old = old_values[i]![t]!;
      const target = advantage[i]![t]! + old;
      const near = old + clamp(value - old, -clip, clip);
      const far_wins = (value - target) ** 2 >= (near - target) ** 2;
      const moves = far_wins ? value - target : Math.abs(value - old) < clip ? near - target : 0;
      return moves / tokens(round);
    })
  );
}

type Bounds = { low: number; high: number; dual?: number };

/** d loss ÷ d ratio of −min(rA, clip(r)A), and of the dual clip: −max(that, cA) where A < 0. */
function surrogateSlope(
  ratio: number,
  advantage: number,
  { low, high, dual = Infinity }: Bounds,
): number {
  const inside = ratio > 1 - low && ratio < 1 + high;
  const pessimistic = ratio * advantage <= clamp(ratio, 1 - low, 1 + high) * advantage;
  const capped = advantage < 0 && ratio > dual;
  return (inside || pessimistic) && !capped ? -advantage : 0;
}

/** PPO's surrogate with a ratio of each token. */
function tokenRatio(
  round: PeerRound,
  advantage: number[][],
  { weight, ...bounds }: Bounds & { weight: number },
) {
  return round.logp.map((row, i) =>
    row.map((logp, t) => {
      const ratio = Math.exp(logp - round.old_logp[i]![t]!);
      return weight * ratio * surrogateSlope(ratio, advantage[i]![t]!, bounds);
    })
  );
}

/** exp of the mean log-ratio of a completion. */
const sequenceRatio = ({ old_logp }: PeerRound, row: number[], i: number) =>
  Math.exp(sum(row.map((logp, t) => logp - old_logp[i]![t]!)) / Math.max(row.length, 1));

/** CISPO: −sg(clip(r)) A log π. */
const cispo = (round: PeerRound, advantage: number[][], { low, high }: Bounds) =>
  round.logp.map((row, i) =>
    row.map((logp, t) => {
      const ratio = Math.exp(logp - round.old_logp[i]![t]!);
      return -clamp(ratio, 1 - low, 1 + high) * advantage[i]![t]! / tokens(round);
    })
  );

const CLIP = { low: 0.2, high: 0.2 };

/** `compute_reward`: the clipped reward on the last token, less k1 of each token. */
function openrlhfRewards(round: PeerRound, reward: number[]): number[][] {
  const { logp, old_logp, ref_logp, kl_coef } = round;
  return logp.map((row, i) =>
    row.map((_, t) => {
      const kl = clamp(old_logp[i]![t]! - ref_logp[i]![t]!, -10, 10);
      return (t === row.length - 1 ? clamp(reward[i]!, -10, 10) : 0) - kl_coef * kl;
    })
  );
}

const openrlhfWhitened = (rows: number[][]) =>
  whitened(rows, { scale: (variance) => 1 / Math.sqrt(Math.max(variance, 1e-8)) });
/** Ours adds 1e-8 to the standard deviation: as much as the profile says. */
const withoutEpsilon = (estimate: (round: PeerRound) => number[][]) => (round: PeerRound) => {
  const all = estimate(round).flat();
  return 1 + 1e-8 / Math.sqrt(sum(all.map((x) => (x - mean(all)) ** 2)) / all.length);
};

/** An estimator of OpenRLHF with its PPO loss, a mean over tokens. */
function openrlhfTokens(estimate: (round: PeerRound) => number[][]): Peer {
  return {
    compute(round) {
      const advantage = estimate(round);
      return {
        advantage,
        logp: tokenRatio(round, advantage, { ...CLIP, weight: 1 / tokens(round) }),
      };
    },
  };
}

function openrlhfWhitening(estimate: (round: PeerRound) => number[][]): Peer {
  const factor = withoutEpsilon(estimate);
  return {
    ...openrlhfTokens((round) => openrlhfWhitened(estimate(round))),
    advantage_factor: factor,
    gradient_factor: factor,
  };
}

const afterBaseline = (baseline: (group: number[]) => number[]) => (round: PeerRound) =>
  openrlhfRewards(round, perGroup(round, baseline)).map(toGo);

const openrlhf: Record<string, Peer> = {
  grpo: openrlhfTokens(afterBaseline(zscore(1e-9))),
  dr_grpo: openrlhfTokens(afterBaseline(centered)),
  reinforce_plus_plus: openrlhfWhitening((round) => openrlhfRewards(round, round.reward).map(toGo)),
  reinforce_plus_plus_baseline: openrlhfWhitening(afterBaseline(centered)),
  gspo: {
    // The ratio of the completion itself: each of its tokens moves all of its terms.
    compute(round) {
      const advantage = afterBaseline(zscore(1e-9))(round);
      const logp = round.logp.map((row, i) => {
        const ratio = sequenceRatio(round, row, i);
        const slope = sum(advantage[i]!.map((a) => surrogateSlope(ratio, a, CLIP) * ratio)) /
          row.length ** 2;
        return row.map(() => slope / filled(round));
      });
      return { advantage, logp };
    },
  },
  ppo: {
    compute(round) {
      const raw = advantageOf(openrlhfRewards(round, round.reward), round.old_values);
      const advantage = openrlhfWhitened(raw);
      const logp = tokenRatio(round, advantage, { ...CLIP, weight: 1 / tokens(round) });
      return { advantage, logp, values: valueGradient(round, raw, 0.5) };
    },
  },
};

/** `agg_loss` with token-mean over the vanilla policy loss, whose dual clip is 3. */
const verlTokens = (round: PeerRound, advantage: number[][], high = 0.2) =>
  tokenRatio(round, advantage, { low: 0.2, high, dual: 3, weight: 1 / tokens(round) });

/** `masked_whiten`: n − 1, and 1e-8 under the root. */
const verlWhitened = (rows: number[][]) =>
  whitened(rows, { bessel: true, scale: (variance) => 1 / Math.sqrt(variance + 1e-8) });
const bessel = (round: PeerRound) => Math.sqrt((tokens(round) - 1) / tokens(round));

function verlGroup(baseline: (group: number[]) => number[], high?: number): Peer {
  return {
    compute(round) {
      const advantage = spread(round, perGroup(round, baseline));
      return { advantage, logp: verlTokens(round, advantage, high) };
    },
  };
}

function verlWhitening(estimate: (round: PeerRound) => number[][]): Peer {
  return {
    compute(round) {
      const advantage = verlWhitened(estimate(round));
      return { advantage, logp: verlTokens(round, advantage) };
    },
    advantage_factor: bessel,
    gradient_factor: bessel,
  };
}

/** The reward on the last token, without a KL. */
const verlRewards = ({ logp, reward }: PeerRound) =>
  logp.map((row, i) => row.map((_, t) => (t === row.length - 1 ? reward[i]! : 0)));

const verl: Record<string, Peer> = {
  grpo: verlGroup(zscore(1e-6)),
  dapo: verlGroup(zscore(1e-6), 0.28),
  // `seq-mean-token-sum-norm`: ÷ all completions of the mini-batch, and ÷ the padded length, which
  // the profile leaves to be set.
  dr_grpo: {
    compute(round) {
      const advantage = spread(round, perGroup(round, centered));
      const weight = 1 / round.logp.length;
      return { advantage, logp: tokenRatio(round, advantage, { ...CLIP, dual: 3, weight }) };
    },
    gradient_factor: (round) => filled(round) / round.logp.length,
  },
  // The ratio's value is the completion's, its gradient each token's own.
  gspo: {
    compute(round) {
      const advantage = spread(round, perGroup(round, zscore(1e-6)));
      const bounds = { low: 3e-4, high: 4e-4 };
      const logp = round.logp.map((row, i) => {
        const ratio = sequenceRatio(round, row, i);
        const weight = ratio / row.length / round.logp.length;
        return row.map((_, t) => weight * surrogateSlope(ratio, advantage[i]![t]!, bounds));
      });
      return { advantage, logp };
    },
    gradient_factor: (round) => filled(round) / round.logp.length,
  },
  // `compute_policy_loss_geo_mean`: exp of the mean of clipped log-ratios, a mean over completions.
  gmpo: {
    compute(round) {
      const advantage = spread(round, perGroup(round, zscore(1e-6)));
      const logp = round.logp.map((row, i) => {
        const sign = Math.sign(advantage[i]![0] ?? 0);
        const logs = row.map((logp, t) => logp - round.old_logp[i]![t]!);
        const kept = logs.map((d) => sign * Math.min(sign * d, sign * clamp(d, -0.2, 0.2)));
        const ratio = Math.exp(sum(kept) / (row.length + 1e-8));
        const weight = -ratio / row.length / round.logp.length;
        return row.map((_, t) => kept[t] === logs[t] ? weight * advantage[i]![t]! : 0);
      });
      return { advantage, logp };
    },
    gradient_factor: (round) => filled(round) / round.logp.length,
  },
  cispo: {
    compute(round) {
      const advantage = spread(round, perGroup(round, zscore(1e-6)));
      return { advantage, logp: cispo(round, advantage, CLIP) };
    },
  },
  // `compute_policy_loss_sapo`: (4 ÷ τ) σ(τ (r − 1)), a mean of completions' means.
  sapo: {
    compute(round) {
      const advantage = spread(round, perGroup(round, zscore(1e-6)));
      const logp = round.logp.map((row, i) =>
        row.map((logp, t) => {
          const [ratio, A] = [Math.exp(logp - round.old_logp[i]![t]!), advantage[i]![t]!];
          const gate = 1 / (1 + Math.exp(-(A > 0 ? 1 : 1.05) * (ratio - 1)));
          return -4 * gate * (1 - gate) * ratio * A / row.length / round.logp.length;
        })
      );
      return { advantage, logp };
    },
    gradient_factor: (round) => filled(round) / round.logp.length,
  },
  reinforce_plus_plus: verlWhitening((round) => verlRewards(round).map(toGo)),
  reinforce_plus_plus_baseline: verlWhitening((round) => spread(round, perGroup(round, centered))),
  ppo: {
    compute(round) {
      const raw = advantageOf(verlRewards(round), round.old_values);
      const advantage = verlWhitened(raw);
      return {
        advantage,
        logp: verlTokens(round, advantage),
        values: valueGradient(round, raw, 0.5),
      };
    },
    advantage_factor: bessel,
    gradient_factor: bessel,
  },
};

/** With reward.broadcast: true, and one micro-batch. */
const feynrlZscore = (round: PeerRound) => spread(round, perGroup(round, zscore(1e-8)));
const feynrlClip: Peer = {
  compute(round) {
    const advantage = feynrlZscore(round);
    return {
      advantage,
      logp: tokenRatio(round, advantage, { ...CLIP, weight: 1 / tokens(round) }),
    };
  },
};

const feynrl: Record<string, Peer> = {
  grpo: feynrlClip,
  dapo: feynrlClip,
  cispo: {
    compute(round) {
      const advantage = feynrlZscore(round);
      return { advantage, logp: cispo(round, advantage, CLIP) };
    },
  },
  // Weights capped at the effective sample size, and a pull of (1 − ESS) · k3, whose gradient is 1
  // − exp(−d).
  p3o: {
    compute(round) {
      const advantage = feynrlZscore(round);
      const log_w = round.logp.map((row, i) => row.map((logp, t) => logp - round.old_logp[i]![t]!));
      const w = log_w.flat().map(Math.exp);
      const ess = sum(w) ** 2 / (w.length * sum(w.map((x) => x * x)));
      const logp = log_w.map((row, i) =>
        row.map((d, t) =>
          (-Math.min(Math.exp(d), ess) * advantage[i]![t]! + (1 - ess) * (1 - Math.exp(-d))) /
          tokens(round)
        )
      );
      return { advantage, logp };
    },
  },
  // gamma and lambda have no default there: 1, as ours are set for it. All completions stopped.
  ppo: {
    compute(round) {
      const raw = advantageOf(verlRewards(round), round.old_values);
      const advantage = whitened(raw, { scale: (variance) => 1 / (Math.sqrt(variance) + 1e-8) });
      const logp = tokenRatio(round, advantage, { ...CLIP, weight: 1 / tokens(round) });
      return { advantage, logp, values: valueGradient(round, raw, Infinity) };
    },
  },
};

export const PEERS: Record<string, Record<string, Peer>> = { openrlhf, verl, feynrl };
