/**
 * What surrounds the loss of a policy gradient: its settings in one schema, and the KL in its
 * credit.
 */
import { z } from "zod";
import { defineAlgorithm } from "./algorithm.ts";
import type { Algorithm, CreditNeeds, CreditRound } from "./algorithm.ts";
import { checkClip, clipSettings } from "./clip.ts";
import { klCoef } from "./kl.ts";
import { type Advantages, creditWithKl, type KlNeed, klNeeds } from "./kl_credit.ts";
import type { Clip, LossFunction } from "./language/mod.ts";
import { checkTerms, type FirstTerms, type LossSettings, termSettings } from "./terms.ts";

/** @internal */
type Shape<Own extends z.ZodRawShape> =
  & ReturnType<typeof clipSettings>
  & Own
  & ReturnType<typeof termSettings>;
/** @internal */
type Config<Own extends z.ZodRawShape> = z.output<z.ZodObject<Shape<Own>, z.core.$strict>>;

/** An algorithm with the settings of a clip and of every term, and `Own`. */
export type PolicyAlgorithm<
  Name extends string,
  Own extends z.ZodRawShape,
  Needs extends keyof CreditNeeds,
> = Algorithm<Name, Shape<Own>, Needs | KlNeed, "kl">;

/** What an algorithm states: its defaults, its credit, and what it does differently. */
export type PolicyGradient<
  Name extends string,
  Own extends z.ZodRawShape,
  Needs extends keyof CreditNeeds,
> =
  & Pick<
    PolicyAlgorithm<Name, Own, Needs>,
    "name" | "about" | "group_min" | "refill" | "ratio" | "value_loss" | "examples"
  >
  & Advantages<CreditRound & Pick<CreditNeeds, Needs | KlNeed>, Config<Own>>
  & {
    /** First values of the clip, and of every term that has different ones from usual. */
    defaults: { clip_low: number; clip_high: number } & FirstTerms;
    /** Settings that the others do not have. */
    settings: Own;
    /** Refuses settings that do not go together. */
    check?(c: Config<Own>, ctx: z.RefinementCtx): void;
    /** What `advantage` reads of a round beside its rewards. */
    needs?: readonly Needs[];
    /** In place of the clipped loss. */
    loss?: LossFunction<Config<Own>, "kl">;
  };

/** The algorithm that has `loss` unless it states its own. */
export function policyAlgorithm<
  Name extends string,
  Own extends z.ZodRawShape,
  Needs extends keyof CreditNeeds,
>(
  stated: PolicyGradient<Name, Own, Needs>,
  loss: LossFunction<Clip & LossSettings, "kl">,
): PolicyAlgorithm<Name, Own, Needs> {
  // The compiler cannot know what an algorithm's own settings are: here it has none.
  const algorithm: unknown = withoutOwn(stated as unknown as WithoutOwn, loss);
  return algorithm as PolicyAlgorithm<Name, Own, Needs>;
}

type WithoutOwn = PolicyGradient<string, Record<never, never>, keyof CreditNeeds>;

function withoutOwn(stated: WithoutOwn, loss: LossFunction<Clip & LossSettings, "kl">) {
  const { defaults, settings, check, needs = [], advantage, normalise, ...rest } = stated;
  const { clip_low: low, clip_high: high, ...first } = defaults;
  const shape = { ...clipSettings({ low, high }), ...settings, ...termSettings(first) };
  return defineAlgorithm({
    loss,
    ...rest,
    config: z.strictObject(shape).superRefine((c, ctx) => {
      checkClip(c, ctx);
      check?.(c, ctx);
      checkTerms(c, ctx);
    }),
    coef: klCoef,
    credit: {
      needs: (c) => [...needs, ...klNeeds(c)],
      assign: (round, c) => creditWithKl(round, c, { advantage, normalise }),
    },
  });
}
