/**
 * What algorithms that learn from rewards share: credit subtracts the KL from the rewards or the
 * advantages if `kl_in` says so, and the loss reads the weight of a steered KL.
 */
import type { z } from "zod";
import {
  type Algorithm,
  type CreditNeeds,
  type CreditRound,
  defineAlgorithm,
} from "../algorithm.ts";
import { klCoef, type klSettings } from "../terms/kl.ts";
import { type Advantages, creditWithKl, type KlNeed, klNeeds } from "../credit/kl_credit.ts";

/** @internal */
type KlShape = ReturnType<typeof klSettings>;
/** @internal */
type Config<Shape extends z.ZodRawShape> = z.output<z.ZodObject<Shape, z.core.$strict>>;

/** What such an algorithm declares: its advantages without the KL, instead of credit. */
type RewardAlgorithm<
  Name extends string,
  Shape extends z.ZodRawShape,
  Needs extends keyof CreditNeeds,
> =
  & Omit<Algorithm<Name, Shape, Needs | KlNeed, "kl">, "coef" | "credit">
  & Advantages<CreditRound & Pick<CreditNeeds, Needs | KlNeed>, Config<Shape>>
  & {
    /** What `advantage` reads of a round besides its rewards. */
    needs?: readonly Needs[];
  };

/** Declares an algorithm with the settings of the KL. */
export const rewardAlgorithm = declare as unknown as <
  const Name extends string,
  Shape extends KlShape,
  const Needs extends keyof CreditNeeds = never,
>(stated: RewardAlgorithm<Name, Shape, Needs>) => Algorithm<Name, Shape, Needs | KlNeed, "kl">;

/** The compiler cannot know an algorithm's own settings, so here it has only the KL's. */
function declare(
  { advantage, normalise, needs = [], ...stated }: RewardAlgorithm<
    string,
    KlShape,
    keyof CreditNeeds
  >,
) {
  return defineAlgorithm({
    ...stated,
    coef: klCoef,
    credit: {
      needs: (c) => [...needs, ...klNeeds(c)],
      assign: (round, c) => creditWithKl(round, c, { advantage, normalise }),
    },
  });
}
