import type { z } from "zod";
import type { Expression, StopReason } from "../data/mod.ts";
import { type LossFunction, traceLoss } from "./language/mod.ts";

/** A round as credit sees it: all its sequences at once, ragged, float64. N sequences of T tokens each. */
export type CreditRound = {
  reward: number[]; // [N]
  group: number[]; // [N] equal for the samples of one prompt
  stop: StopReason[]; // [N]
  length: number[]; // [N] sampled tokens
  token_reward?: number[][]; // [N][T]
};

/** What credit may ask for; it is computed first. */
export type CreditNeeds = {
  old_logp: number[][]; // [N][T]
  ref_logp: number[][]; // [N][T]
  values: number[][]; // [N][T] V before the token
  bootstrap: number[]; // [N] V after the last token, 0 if the sequence truly stopped
  coef: Record<string, number>;
};

/** Who gets how much: one number per sequence [N], or one per token [N][T]. */
export type Assigned = { advantage: number[] | number[][]; returns?: number[][] };

/** How rewards become advantages. `needs` decides what is computed first and types the argument of `assign`. */
export type Credit<Config, Needs extends keyof CreditNeeds> = {
  readonly needs: readonly Needs[];
  assign(round: CreditRound & Pick<CreditNeeds, Needs>, config: Config): Assigned;
};

type Settings<Shape extends z.ZodRawShape> = z.output<z.ZodObject<Shape, z.core.$strict>>;

/** An algorithm: its configuration, its credit assignment and its loss, on one page. */
export type Algorithm<
  Name extends string = string,
  Shape extends z.ZodRawShape = z.ZodRawShape,
  Needs extends keyof CreditNeeds = keyof CreditNeeds,
  Coef extends string = string,
> = {
  readonly name: Name;
  /** One line for people who choose it in a configuration. */
  readonly about?: string;
  readonly config: z.ZodObject<Shape, z.core.$strict>;
  /** Coefficients that change during a run; the loss reads them as `coef.NAME`. */
  readonly coef?: readonly Coef[];
  /** The smallest group that it can learn from. */
  readonly group_min?: number;
  /** None: it learns from rows, not from rewards. */
  readonly credit?: Credit<Settings<Shape>, Needs>;
  readonly loss: LossFunction<Settings<Shape>, Coef>;
  /** The value model's own loss. */
  readonly value_loss?: LossFunction<Settings<Shape>, Coef>;
  /** Settings that the property tests try besides the defaults: enough to reach every term of the loss. */
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
export type AnyAlgorithm = Pick<Algorithm, "name" | "about" | "config" | "coef" | "group_min" | "examples"> & {
  readonly credit?: { readonly needs: readonly (keyof CreditNeeds)[]; assign(round: never, config: never): Assigned };
  loss(inputs: never, config: never): ReturnType<Algorithm["loss"]>;
  value_loss?(inputs: never, config: never): ReturnType<Algorithm["loss"]>;
};

/** The expressions of an algorithm: its own, and the value model's where it has one. */
export type TracedAlgorithm = { loss: Expression; value_loss?: Expression };

/** Traces the losses of an algorithm with a configuration (defaults are filled in). */
export function traceAlgorithm(algorithm: AnyAlgorithm, config: unknown): TracedAlgorithm {
  const settings = algorithm.config.parse(config);
  const trace = (loss: unknown) =>
    traceLoss(loss as LossFunction<unknown, string>, settings, { coef: algorithm.coef ?? [] });
  if (algorithm.value_loss === undefined) return { loss: trace(algorithm.loss) };
  return { loss: trace(algorithm.loss), value_loss: trace(algorithm.value_loss) };
}
