import type { z } from "zod";

/**
 * A row as rewards see it: the original columns, with `answer` the reference answer (GSM8K: the
 * number after `####`).
 */
export type RewardRow = { answer?: string; [column: string]: unknown };

/** Facts of the settings of rewards that came after 0.1.0: a score depends on them. */
export const graderSetting = {
  numerics: false,
  fork: "free",
  resume: "refused",
  since: "0.1.0",
} as const;

/** One sample to score. */
export type RewardInput = {
  /** The prompt as text; a chat after its template. */
  prompt: string;
  completion: string;
  row: RewardRow;
  /** Sampled tokens of the completion, the stop token too. */
  tokens: number;
  signal: AbortSignal;
};

/**
 * A score, alone or with further numbers, which are metrics (`reward/NAME/NUMBER/mean`); null:
 * there is nothing to grade by.
 */
export type Score = number | { score: number; metrics?: Record<string, number> } | null;

/**
 * A reward. `score` receives the parts of `RewardInput` that it reads and its own configuration. It
 * returns 0 for a wrong answer and throws for a broken row: a throw counts as a failed sample,
 * never as a score.
 */
export type Reward<
  Name extends string = string,
  Shape extends z.ZodRawShape = z.ZodRawShape,
  Reads = RewardInput,
> = {
  readonly name: Name;
  /**
   * `engine`: called in the engine's process, so it must be quick and pure. `process`: called in a
   * pool with a hard time limit.
   */
  readonly runs_on: "engine" | "process";
  readonly config: z.ZodObject<Shape, z.core.$strict>;
  /**
   * Throws as `score` would if a row cannot be scored, whatever the completion. All rows are
   * checked before anything is generated.
   */
  check?(row: RewardRow, config: z.output<z.ZodObject<Shape, z.core.$strict>>): void;
  /** A sample is right from this score on; absent: the reward does not say what is right. */
  readonly right_at?: number;
  /**
   * It returns `metrics.right` beside its score, which takes precedence over `right_at`: a sample
   * is right from 0.5 on.
   */
  readonly says_right?: true;
  /**
   * The answer that a completion gives, in one spelling, or null if it gives none: maj@k counts
   * votes for it. Absent: completions have no answers that can be compared.
   */
  answer?(completion: string, config: z.output<z.ZodObject<Shape, z.core.$strict>>): string | null;
  score(input: Reads, config: z.output<z.ZodObject<Shape, z.core.$strict>>): Score | Promise<Score>;
};

/** Defines a reward: one file, plus one line in `table.ts`. */
export function defineReward<
  const Name extends string,
  Shape extends z.ZodRawShape,
  Reads = RewardInput,
>(
  reward: Reward<Name, Shape, Reads>,
): Reward<Name, Shape, Reads> {
  return reward;
}
