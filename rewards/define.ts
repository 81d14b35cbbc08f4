import type { z } from "zod";
import type { RewardStyle } from "../data/mod.ts";
import type { RewardProcess } from "./process_limits.ts";
import type { RewardModelSettings } from "./model_settings.ts";

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
 * By which hash a reward's results are kept: that of the code that the reward worker imports, or of
 * its settings except for `apart_from`, on which no score depends. `version`: raise it when an equal
 * answer gets another score. `usually`: whether equal samples have equal scores if the entry does
 * not say it.
 * @internal
 */
type Kept =
  | { by: "code"; usually: boolean }
  | { by: "settings"; version: number; apart_from: readonly string[]; usually: boolean };

/** Why a reward cannot be asked at all, and what to do. */
export type Unready = { why: string; fix: string };

/** How a function in Python is called, and the columns that are its parameters. */
export type Called = { needs?: readonly string[]; style?: RewardStyle };

/** @internal */
type Settings<Shape extends z.ZodRawShape> = z.output<z.ZodObject<Shape, z.core.$strict>>;

/**
 * What every reward declares, wherever it runs.
 * @internal
 */
type Facts<Name extends string, Shape extends z.ZodRawShape> = {
  readonly name: Name;
  /** What its score is, in one sentence. */
  readonly about: string;
  readonly config: z.ZodObject<Shape, z.core.$strict>;
  /** How its results are kept; null: they are not, because finding one costs more. */
  readonly kept: Kept | null;
  /** A sample is right from this score on; null: the reward does not say what is right. */
  readonly right_at: number | null;
  /**
   * It returns `metrics.right` beside its score, which takes precedence over `right_at`: a sample
   * is right from 0.5 on.
   */
  readonly says_right?: true;
  /** Its name in metrics; absent: its own. */
  label?(config: Settings<Shape>): string;
  /**
   * Throws a RangeError if a row cannot be scored, whatever the completion. All rows are checked
   * before anything is generated.
   */
  check?(row: RewardRow, config: Settings<Shape>, called?: Called): void;
  /** Asked before a run starts: null, if it can be asked for scores. */
  unready?(config: Settings<Shape>): Promise<Unready | null>;
  /**
   * The answer that a completion gives, in one spelling, or null if it gives none: maj@k counts
   * votes for it. Absent: completions have no answers that can be compared.
   */
  answer?(completion: string, config: Settings<Shape>): string | null;
};

/**
 * A reward that is called in the engine's process, so it must be quick and pure. `score` receives
 * the parts of `RewardInput` that it reads and its own configuration. It returns 0 for a wrong
 * answer and throws for a broken row: a throw counts as a failed sample, never as a score.
 */
export type Reward<
  Name extends string = string,
  Shape extends z.ZodRawShape = z.ZodRawShape,
  Reads = RewardInput,
> = Facts<Name, Shape> & {
  readonly runs_on: "engine";
  score(input: Reads, config: Settings<Shape>): Score | Promise<Score>;
};

/**
 * A function in Python that the reward worker imports, and what its processes may use.
 * @internal
 */
export type ImportedFunction = {
  /** `path.py:function`, or `package.module:function`. */
  source: string;
  timeout_ms: number;
  process: RewardProcess;
  /** How it is called; absent: as its signature says. */
  style?: RewardStyle;
  /** It makes the function to call, from these. */
  settings?: Record<string, unknown>;
};

/** A reward that the reward worker computes, with a hard time limit: a function, or a model. */
export type ProcessReward<
  Name extends string = string,
  Shape extends z.ZodRawShape = z.ZodRawShape,
> = Facts<Name, Shape> & {
  readonly runs_on: "process";
  asks(config: Settings<Shape>): ImportedFunction | { model: RewardModelSettings };
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

/** As {@linkcode defineReward}, for a reward that the reward worker computes. */
export function defineProcessReward<const Name extends string, Shape extends z.ZodRawShape>(
  reward: ProcessReward<Name, Shape>,
): ProcessReward<Name, Shape> {
  return reward;
}
