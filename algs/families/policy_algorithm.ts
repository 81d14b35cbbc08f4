/** What policy-gradient losses share: their settings in one schema, and the checks of these. */
import { z } from "zod";
import type { Algorithm, CreditNeeds, CreditRound } from "../algorithm.ts";
import { checkClip, clipSettings } from "../terms/clip.ts";
import type { Advantages, KlNeed } from "../credit/kl_credit.ts";
import type { Clip, LossFunction } from "../language/mod.ts";
import { rewardAlgorithm } from "./reward_algorithm.ts";
import { checkTerms, type FirstTerms, type LossSettings, termSettings } from "../terms/terms.ts";

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

/** What an algorithm declares: its defaults, its credit, and its differences. */
export type PolicyGradient<
  Name extends string,
  Own extends z.ZodRawShape,
  Needs extends keyof CreditNeeds,
> =
  & Pick<
    PolicyAlgorithm<Name, Own, Needs>,
    "name" | "about" | "group_min" | "refill" | "per_token" | "ratio" | "value_loss" | "examples"
  >
  & Advantages<CreditRound & Pick<CreditNeeds, Needs | KlNeed>, Config<Own>>
  & {
    /** Defaults of the clip, and of each term with unusual defaults. */
    defaults: { clip_low: number; clip_high: number } & FirstTerms;
    /** Settings that only this algorithm has. */
    settings: Own;
    /** Refuses settings that conflict. */
    check?(c: Config<Own>, ctx: z.RefinementCtx): void;
    /** What `advantage` reads of a round besides its rewards. */
    needs?: readonly Needs[];
    /** Replaces the clipped loss. */
    loss?: LossFunction<Config<Own>, "kl">;
  };

/** Declares an algorithm. */
export type PolicyDeclaration = <
  const Name extends string,
  Own extends z.ZodRawShape,
  const Needs extends keyof CreditNeeds = never,
>(stated: PolicyGradient<Name, Own, Needs>) => PolicyAlgorithm<Name, Own, Needs>;

/** Declares algorithms with `loss` as the default loss. */
export function policyAlgorithm(loss: LossFunction<Clip & LossSettings, "kl">): PolicyDeclaration {
  // The compiler cannot know an algorithm's own settings, so here it has none.
  const declare: unknown = (stated: WithoutOwn) => withoutOwn(stated, loss);
  return declare as PolicyDeclaration;
}

type WithoutOwn = PolicyGradient<string, Record<never, never>, keyof CreditNeeds>;

function withoutOwn(stated: WithoutOwn, loss: LossFunction<Clip & LossSettings, "kl">) {
  const { defaults, settings, check, ...rest } = stated;
  const { clip_low: low, clip_high: high, ...first } = defaults;
  const shape = { ...clipSettings({ low, high }), ...settings, ...termSettings(first) };
  return rewardAlgorithm({
    loss,
    ...rest,
    config: z.strictObject(shape).superRefine((c, ctx) => {
      checkClip(c, ctx);
      check?.(c, ctx);
      checkTerms(c, ctx);
    }),
  });
}
