/** What an evaluation estimates from the samples of its problems, and how sure it is. */

/** What is known of one problem: `n` decided samples, `c` of them right. */
type Decided = { n: number; c: number };

/** A sample's vote: the answer that it gives, or null if none can be read, and if it is right. */
export type Vote = { answer: string | null; right: boolean };

/** The mean; 0 of nothing. */
export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}

/**
 * Chance that at least one of `k` samples drawn from `n` is right, if `c` of the `n` are: 1 -
 * C(n-c, k) / C(n, k). Chen et al. 2021, arXiv:2107.03374, eq. 1.
 */
export function passAtK(n: number, c: number, k: number): number {
  if (n - c < k) return 1;
  let none = 1;
  for (let i = n - c + 1; i <= n; i++) none *= 1 - k / i;
  return 1 - none;
}

/**
 * Chance that all of `k` samples drawn from `n` are right, if `c` of the `n` are: C(c, k) / C(n, k),
 * written pass^k. Yao et al. 2024, arXiv:2406.12045, section 3.
 */
export function passHatK(n: number, c: number, k: number): number {
  let all = 1;
  for (let i = 0; i < k; i++) all *= Math.max(0, c - i) / (n - i);
  return all;
}

/**
 * An estimate (`passAtK`, `passHatK`) of each problem for k = 1, 2, ..., up to the most samples of
 * any: [k][problem]. null: the problem has fewer than k samples.
 */
export function passColumns(
  problems: readonly Decided[],
  estimate: typeof passAtK,
): (number | null)[][] {
  const most = Math.max(0, ...problems.map(({ n }) => n));
  return Array.from(
    { length: most },
    (_, i) => problems.map(({ n, c }) => n > i ? estimate(n, c, i + 1) : null),
  );
}

/**
 * Chance that the most common answer of a problem's samples is right. Answers that are equally
 * common are drawn by lot; a sample without an answer has no vote, and without any vote the problem
 * is wrong.
 */
export function majorityRight(votes: readonly Vote[]): number {
  const answers = new Map<string, { votes: number; right: number }>();
  for (const { answer, right } of votes) {
    if (answer === null) continue;
    const counted = answers.get(answer) ?? { votes: 0, right: 0 };
    answers.set(answer, { votes: counted.votes + 1, right: counted.right + Number(right) });
  }
  const most = Math.max(0, ...[...answers.values()].map((one) => one.votes));
  const winners = [...answers.values()].filter((one) => one.votes === most);
  return mean(winners.map((one) => one.right / one.votes));
}

/** Lower and upper bound. */
type Interval = [number, number];

/** Resamples of the problems. */
const RESAMPLES = 1000;
/** Share of the resampled means that an interval leaves out at each end. */
const TAIL = 0.025;

/**
 * 95 % intervals of the means of several columns, by the percentile bootstrap over problems (Efron
 * 1979): problems are drawn with replacement, the same ones for all columns, and the means of the
 * drawn ones are sorted. `columns`: [name][problem]; null: the problem has no such value. A column
 * with fewer than two values has no interval. `random`: a stream in [0, 1).
 */
export function bootstrapIntervals(
  columns: Readonly<Record<string, readonly (number | null)[]>>,
  random: () => number,
): Record<string, Interval> {
  const known = Object.entries(columns).filter(([, values]) =>
    values.filter((value) => value !== null).length > 1
  );
  const size = known[0]?.[1].length ?? 0;
  const drawn = Array.from(
    { length: RESAMPLES },
    () => Int32Array.from({ length: size }, () => Math.floor(random() * size)),
  );
  return Object.fromEntries(known.map(([name, values]) => {
    const means = drawn.map((places) => meanAt(values, places)).filter((one) => one !== null);
    means.sort((a, b) => a - b);
    const at = (share: number) => means[Math.round(share * (means.length - 1))]!;
    return [name, [at(TAIL), at(1 - TAIL)]];
  }));
}

/** The mean of the values at these places; null: none of them has one. */
function meanAt(values: readonly (number | null)[], places: Int32Array): number | null {
  let sum = 0;
  let n = 0;
  for (const place of places) {
    const value = values[place]!;
    if (value === null) continue;
    sum += value;
    n++;
  }
  return n === 0 ? null : sum / n;
}
