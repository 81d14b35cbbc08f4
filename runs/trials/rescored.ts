/** Old and new rewards of samples, side by side. */

/** One sample. */
export type RescoredSample = {
  loop: string;
  round: number;
  draw: number;
  sample: number;
  /** Its recorded reward; null: it has none. */
  before: number | null;
  after: number | null;
  /** The new scores by reward. */
  parts: Record<string, number>;
  /** Why there is no new reward. */
  failed: string | null;
  detail: string | null;
};

/** Rewards of some samples; null where there are none. */
export type Spread = {
  samples: number;
  mean: number | null;
  std: number | null;
  /** Least, quartiles and greatest. */
  quantiles: [number, number, number, number, number] | null;
};

/** What `rescore --json` prints. */
export type Rescored = {
  run: string;
  samples: number;
  /** Samples without a new reward, by reason, and what the first one of each says. */
  failures: Record<string, { samples: number; detail: string | null }>;
  /** Results that were kept and not computed. */
  kept: number;
  before: Spread;
  after: Spread;
  /** The new scores of each reward. */
  parts: Record<string, Spread>;
  /** Samples whose reward differs, those that have it only once included. */
  changed: number;
  /** The samples that changed most, at most 8. */
  most_changed: Omit<RescoredSample, "parts" | "failed" | "detail">[];
};

const SHOWN = 8;

/** Compares what samples had with what they have. */
export function compareScores(
  samples: readonly RescoredSample[],
  { run, labels, kept }: { run: string; labels: readonly string[]; kept: number },
): Rescored {
  const failures: Rescored["failures"] = {};
  for (const { failed, detail } of samples) {
    if (failed === null) continue;
    failures[failed] ??= { samples: 0, detail };
    failures[failed].samples++;
  }
  const changed = samples.filter(({ before, after }) => before !== after);
  const by = ({ before, after }: RescoredSample) =>
    before === null || after === null ? -1 : Math.abs(after - before);
  const most = changed.toSorted((a, b) => by(b) - by(a)).slice(0, SHOWN);
  return {
    run,
    samples: samples.length,
    failures,
    kept,
    before: spreadOf(samples.map(({ before }) => before)),
    after: spreadOf(samples.map(({ after }) => after)),
    parts: Object.fromEntries(
      labels.map((label) => [label, spreadOf(samples.map(({ parts }) => parts[label] ?? null))]),
    ),
    changed: changed.length,
    most_changed: most.map(({ loop, round, draw, sample, before, after }) => ({
      loop,
      round,
      draw,
      sample,
      before,
      after,
    })),
  };
}

function spreadOf(values: readonly (number | null)[]): Spread {
  const known = values.filter((value) => value !== null).toSorted((a, b) => a - b);
  if (known.length === 0) return { samples: 0, mean: null, std: null, quantiles: null };
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  const squares = known.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  const at = (share: number) => known[Math.round(share * (known.length - 1))]!;
  return {
    samples: known.length,
    mean,
    std: Math.sqrt(squares / known.length),
    quantiles: [at(0), at(0.25), at(0.5), at(0.75), at(1)],
  };
}
