/**
 * Losses that only the tests know: what the language can say and no algorithm of the table does.
 * They join the suite by being in the table at the end, and need nothing else.
 */
import { z } from "zod";
import {
  type AnyAlgorithm,
  defineAlgorithm,
  k3,
  scalar,
  stepSum,
  surrogate,
  tokenMean,
  where,
} from "../../../algs/mod.ts";

const clips = { clip_low: z.number().default(0.2), clip_high: z.number().default(0.28) };

/** A statistic of a statistic in the gradient: log-probabilities whitened over the step. */
const whitened = defineAlgorithm({
  name: "whitened",
  config: z.strictObject({}),
  loss: ({ logp, advantage }) => {
    const mean = tokenMean(logp).detach();
    const variance = tokenMean(logp.sub(mean).square()).detach();
    return { loss: tokenMean(logp.sub(mean).div(variance.add(1)).mul(advantage).neg()) };
  },
});

/**
 * A mask instead of a cap (IcePop), a cap for A < 0 (dual clip), and a coefficient that changes
 * during the run.
 */
const masked = defineAlgorithm({
  name: "masked",
  config: z.strictObject({
    ...clips,
    high: z.number().default(1.3),
    dual: z.number().default(1.5),
  }),
  coef: { kl: () => 0.05 },
  loss: ({ logp, old_logp, behaviour_logp, ref_logp, advantage, coef, staleness, length }, c) => {
    const w = old_logp.sub(behaviour_logp).exp();
    const clipped = surrogate(logp.sub(old_logp).exp(), advantage, c); // [B, T]
    const capped = where(advantage.lt(0), clipped.minimum(advantage.mul(-c.dual)), clipped);
    const policy = capped.mul(w.mul(w.le(c.high))).div(staleness.add(1)).mul(length.log().add(1));
    return { loss: tokenMean(policy).add(tokenMean(k3(logp, ref_logp)).mul(coef.kl)) };
  },
});

/** The remaining operations: sums that are linear through subtraction, a choice and a factor. */
const plumbing = defineAlgorithm({
  name: "plumbing",
  config: z.strictObject({}),
  loss: ({ logp, entropy, advantage, n_sequences }) => {
    // a sum that is not live
    const scale = stepSum(advantage.square()).div(n_sequences).add(1).log();
    const bonus = where(
      tokenMean(advantage).lt(0.1),
      tokenMean(entropy),
      tokenMean(entropy.exp().sigmoid().maximum(0.7)),
    );
    return { loss: tokenMean(logp.mul(advantage)).neg().div(scale).sub(bonus.mul(0.01)).add(0.5) };
  },
});

/**
 * Numbers wherever an operation of tokens may have one: as a condition, as both choices, before an
 * operator.
 */
const numbers = defineAlgorithm({
  name: "numbers",
  config: z.strictObject({}),
  loss: ({ logp, old_logp, advantage }) => {
    const weight = where(advantage.lt(0), 0.1, 0.7).add(where(scalar(1), old_logp, 0)); // [B, T]
    const live = where(tokenMean(advantage).lt(0.1), logp, 0.3); // [B, T]
    const bounded = scalar(-0.4).minimum(logp).add(scalar(2).div(old_logp)).mul(
      scalar(-1).le(old_logp),
    ); // [B, T]
    return { loss: tokenMean(weight.mul(live).add(bounded)) };
  },
});

/** The table: one line each. */
export const TEST_ALGORITHMS: Record<string, AnyAlgorithm> = { whitened, masked, plumbing };

/** Those, and one whose constant condition has a branch that no case takes. */
export const PRINTED_ALGORITHMS: Record<string, AnyAlgorithm> = { ...TEST_ALGORITHMS, numbers };
