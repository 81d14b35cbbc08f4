/**
 * The KL to a reference model. With d = log π − log π_ref on samples of π:
 *
 *     k1            d                    unbiased
 *     k2            ½d²                  biased; as a loss it has the gradient of KL(π‖π_ref)
 *     k3            exp(−d) − 1 + d      unbiased, never negative; as a loss: that of KL(π_ref‖π)
 *     k3_k2         k3's value with k2's gradient
 *     k3_weighted   r·k3, r = π ÷ π_old: unbiased, with the gradient of KL(π‖π_ref)
 *
 * Schulman 2020, "Approximating KL divergence"; gradients: Tang and Munos 2025, arXiv:2506.09477.
 * In the loss, k1 has expected gradient 0 and is refused. In reward and advantage, k2 is biased and
 * the last two equal k3, so they are refused.
 *
 *     kl_in: reward      r_t − coefficient · KL_t, before a group's mean and standard deviation
 *     kl_in: advantage   A_t − coefficient · Σ_{k ≥ t} KL_k, after them
 *
 * A standard deviation also scales a KL that was subtracted from the reward: in a group of equal
 * rewards only its noise remains, and becomes advantages of unit size for any coefficient.
 * Algorithms that divide by a standard deviation refuse it without `kl_scaled`.
 *
 * With `kl_target` the coefficient is steered: Ziegler et al. 2019, arXiv:1909.08593, section 2.2.
 * With KL the round's mean over completions of Σ_t d_t, and N completions,
 *
 *     coefficient ← coefficient · (1 + clip(KL ÷ kl_target − 1, −0.2, 0.2) · N ÷ kl_horizon)
 */
import { z } from "zod";
import { setting } from "../../data/mod.ts";
import { type Expr, k1, k2, k3, type LossInputs } from "../language/mod.ts";

const /** @internal */ PLACES = ["loss", "reward", "advantage"] as const;
const /** @internal */ ESTIMATORS = ["k1", "k2", "k3", "k3_k2", "k3_weighted"] as const;
/**
 * How a policy is held near the reference: the weight of the KL, its place and estimator, and the
 * settings that steer the weight.
 */
export type KlSettings = {
  kl_coef: number;
  kl_in: (typeof PLACES)[number];
  kl_estimator: (typeof ESTIMATORS)[number];
  kl_target: number | null;
  kl_horizon: number;
  kl_scaled?: boolean;
};

/**
 * For algorithms whose advantage sums token rewards, or whose action is a completion: the KL
 * belongs in the reward.
 */
export const LOSS_OR_REWARD = ["loss", "reward"] as const;
type FirstKl = Partial<Pick<KlSettings, "kl_coef" | "kl_in" | "kl_estimator">> & {
  kl_places?: readonly (typeof PLACES)[number][];
};

/** Settings of the KL, with the algorithm's defaults. */
export function klSettings(
  { kl_coef = 0, kl_in = "loss", kl_estimator = "k3", kl_places = PLACES }: FirstKl = {},
) {
  return {
    kl_coef: z.number().min(0).default(kl_coef).describe(
      "Weight of the KL to the reference model; 0: no reference model is loaded.",
    ),
    kl_in: z.enum(kl_places as typeof PLACES).default(kl_in).describe(
      "Where the KL goes: a term of the loss, or subtracted from the reward or the advantage.",
    ),
    kl_estimator: z.enum(ESTIMATORS).default(kl_estimator).describe(
      "The estimator of a token's KL.",
    ),
    kl_target: z.number().positive().nullable().default(null).describe(
      "Target KL per completion: the weight starts at kl_coef and adapts towards it; null: " +
        "the weight is fixed.",
    ).register(setting, { unit: "nats" }),
    kl_horizon: z.number().positive().default(10_000).describe(
      "Completions over which the weight adapts.",
    ).register(setting, { unit: "completions" }),
  };
}

/** Setting of algorithms that divide by a group's standard deviation. */
export const klScaled = {
  kl_scaled: z.boolean().default(false).describe(
    "Confirms that a KL in the reward is intentionally divided by the group's standard " +
      "deviation with it.",
  ),
};

/** The initial value of the steered weight. */
export const klCoef = { kl: (c: KlSettings): number => c.kl_coef };

const IN_CREDIT = {
  k2: "is biased as a reward: use k1 or k3",
  k3_k2: "equals k3 as a reward, because a reward has no gradient: use k1 or k3",
  k3_weighted: "equals k3 as a reward, because the ratio is 1: use k1 or k3",
};
const WRONG: Record<KlSettings["kl_in"], Partial<Record<KlSettings["kl_estimator"], string>>> = {
  loss: {
    k1: "has expected gradient 0 as a loss, so it would have no effect: use k2, k3, k3_k2 or " +
      "k3_weighted",
  },
  reward: IN_CREDIT,
  advantage: IN_CREDIT,
};

/**
 * Refuses estimators that are wrong for `kl_in`, a KL whose noise would be scaled up, and a steered
 * weight that starts at 0.
 */
export function checkKl(c: KlSettings, ctx: z.RefinementCtx): void {
  const { kl_coef, kl_in, kl_estimator, kl_target, kl_scaled } = c;
  if (kl_in === "reward" && kl_coef > 0 && kl_scaled === false) {
    const message =
      "puts the KL under the group's standard deviation, so that in a group of equal rewards its " +
      "noise becomes advantages of unit size: use advantage or loss, or confirm it with " +
      "kl_scaled: true";
    ctx.addIssue({ code: "custom", path: ["kl_in"], message });
  }
  const why = WRONG[kl_in][kl_estimator];
  if (why !== undefined) {
    ctx.addIssue({
      code: "custom",
      path: ["kl_estimator"],
      message: `${kl_estimator} in the ${kl_in} ${why}`,
    });
  }
  if (kl_target !== null && kl_coef === 0) {
    const message =
      "steers a weight that starts at 0 and so stays 0: set kl_coef to a start value, e.g. 0.1";
    ctx.addIssue({ code: "custom", path: ["kl_target"], message });
  }
}

/** The weighted KL as a term of the loss; null: the loss has none. [B, T] */
export function klTerm(x: LossInputs<"kl">, c: KlSettings): Expr<"token"> | null {
  const kl = klOf(x, c);
  return kl && kl.mul(c.kl_target === null ? c.kl_coef : x.coef.kl);
}

/** The KL of each token if it is a term of the loss, else null. [B, T] */
export function klOf(
  { logp, old_logp, ref_logp }: LossInputs,
  c: KlSettings,
): Expr<"token"> | null {
  if (c.kl_coef === 0 || c.kl_in !== "loss") return null;
  switch (c.kl_estimator) {
    case "k1":
      return k1(logp, ref_logp);
    case "k2":
      return k2(logp, ref_logp);
    case "k3":
      return k3(logp, ref_logp);
    case "k3_k2": {
      const gradient = k2(logp, ref_logp);
      return gradient.sub(gradient.detach()).add(k3(logp, ref_logp).detach());
    }
    case "k3_weighted":
      return logp.sub(old_logp).exp().mul(k3(logp, ref_logp));
  }
}
