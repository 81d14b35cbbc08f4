import type { z } from "zod";
import type { Expression, RatioBounds, StopReason } from "../data/mod.ts";
import { type LossFunction, traceLoss } from "./language/mod.ts";
import type { Refill } from "./terms/refill.ts";

/**
 * A round as credit sees it: all N sequences at once, ragged, float64. T counts the sampled tokens
 * of a sequence, without its prompt and observations: no mask is needed, and credit flows across
 * observations.
 */
export type CreditRound = {
  reward: number[]; // [N]
  group: number[]; // [N] equal for the samples of one prompt
  stop: StopReason[]; // [N]
  length: number[]; // [N] sampled tokens: T of each
  token_reward?: number[][]; // [N][T], from an environment, added to `reward`
};

/** One reward of a round, apart from the others. */
export type RewardPart = {
  name: string;
  weight: number;
  /** [N] Unweighted; null: it does not apply to the sample. */
  paid: (number | null)[];
};

/** What credit may need; it is computed before credit is assigned. */
export type CreditNeeds = {
  parts: RewardPart[]; // each reward by itself; `reward` is the sum of weight times paid
  old_logp: number[][]; // [N][T]
  ref_logp: number[][]; // [N][T]
  values: number[][]; // [N][T] V before the token
  bootstrap: number[]; // [N] V after the last token, 0 if the sequence truly stopped
  coef: Record<string, number>; // of this round
};

/** The credit: one number per sequence [N] or per token [N][T]. */
export type Assigned = {
  advantage: number[] | number[][];
  /** The targets of the value model. [N][T] */
  returns?: number[][];
  /** Coefficients of the next round, if they change. */
  coef?: Record<string, number>;
  /** Metrics of the round. */
  metrics?: Record<string, number>;
};

/**
 * How rewards become advantages. `needs` names what is computed first and types the argument of
 * `assign`. If it is a function, it returns what the given settings need, and `assign` reads
 * nothing else.
 */
export type Credit<Config, Needs extends keyof CreditNeeds> = {
  readonly needs: readonly Needs[] | ((config: Config) => readonly Needs[]);
  assign(round: CreditRound & Pick<CreditNeeds, Needs>, config: Config): Assigned;
};

/** What an algorithm reads that learns from completions with a label. */
export type Unpaired = { mismatched: boolean };

/** @internal */
type Settings<Shape extends z.ZodRawShape> = z.output<z.ZodObject<Shape, z.core.$strict>>;

/** An algorithm: its configuration, its credit assignment and its loss, on one page. */
export type Algorithm<
  Name extends string = string,
  Shape extends z.ZodRawShape = z.ZodRawShape,
  Needs extends keyof CreditNeeds = keyof CreditNeeds,
  Coef extends string = string,
> = {
  readonly name: Name;
  /** One line that helps people choose it in a configuration. */
  readonly about?: string;
  readonly config: z.ZodObject<Shape, z.core.$strict>;
  /**
   * Coefficients that change during a run, each with its first value; the loss reads them as
   * `coef.NAME`.
   */
  readonly coef?: Readonly<Record<Coef, (config: Settings<Shape>) => number>>;
  /** The smallest group that it can learn from. */
  readonly group_min?: number;
  /** Whether groups without signal are replaced until the round is full; null: they are not. */
  readonly refill?: (config: Settings<Shape>) => Refill | null;
  /** `score`: the model outputs one number per sequence instead of tokens. It is a reward model. */
  readonly head?: "score";
  /**
   * It learns from completions with a label instead of pairs. `mismatched`: whether the loss also
   * reads completions behind the prompts of other rows.
   */
  readonly unpaired?: (config: Settings<Shape>) => Unpaired;
  /** Whether its credit reads what each token earns; otherwise it reads their sum. */
  readonly per_token?: true;
  /** What the ratio of its clip covers, if not a single token. */
  readonly ratio?: RatioBounds["ratio"];
  /**
   * Whether the model's dropout is on while it trains. Off by default: the ratio of two forward
   * passes would be noisy.
   */
  readonly dropout?: boolean;
  /** Absent if the algorithm learns from rows instead of rewards. */
  readonly credit?: Credit<Settings<Shape>, Needs>;
  readonly loss: LossFunction<Settings<Shape>, Coef>;
  /** The value model's own loss. */
  readonly value_loss?: LossFunction<Settings<Shape>, Coef>;
  /**
   * Settings that the property tests try besides the defaults: enough to reach every term of the
   * loss.
   */
  readonly examples?: readonly z.input<z.ZodObject<Shape, z.core.$strict>>[];
};

/** Defines an algorithm: one file, plus one line in `table.ts`. */
export function defineAlgorithm<
  const Name extends string,
  Shape extends z.ZodRawShape,
  const Needs extends keyof CreditNeeds = never,
  const Coef extends string = never,
>(algorithm: Algorithm<Name, Shape, Needs, Coef>): Algorithm<Name, Shape, Needs, Coef> {
  return algorithm;
}

/** An algorithm whose type parameters do not matter to the caller. */
export type AnyAlgorithm =
  & Pick<
    Algorithm,
    | "name"
    | "about"
    | "config"
    | "group_min"
    | "head"
    | "per_token"
    | "ratio"
    | "dropout"
    | "examples"
  >
  & {
    readonly coef?: Readonly<Record<string, (config: never) => number>>;
    readonly credit?: {
      readonly needs:
        | readonly (keyof CreditNeeds)[]
        | ((config: never) => readonly (keyof CreditNeeds)[]);
      assign(round: never, config: never): Assigned;
    };
    unpaired?(config: never): Unpaired;
    refill?(config: never): Refill | null;
    loss(inputs: never, config: never): ReturnType<Algorithm["loss"]>;
    value_loss?(inputs: never, config: never): ReturnType<Algorithm["loss"]>;
  };

/** The expressions of an algorithm: its loss, and the value model's loss if it has one. */
export type TracedAlgorithm = { loss: Expression; value_loss?: Expression };

/** Traces the losses of an algorithm with a configuration (defaults are filled in). */
export function traceAlgorithm(algorithm: AnyAlgorithm, config: unknown): TracedAlgorithm {
  const settings = algorithm.config.parse(config);
  const coef = Object.keys(algorithm.coef ?? {});
  const trace = (loss: unknown) =>
    traceLoss(loss as LossFunction<unknown, string>, settings, { coef });
  if (algorithm.value_loss === undefined) return { loss: trace(algorithm.loss) };
  return { loss: trace(algorithm.loss), value_loss: trace(algorithm.value_loss) };
}
