/** The KL as part of credit, and its weight from round to round. `kl.ts` has the formulas. */
import type { Assigned, CreditNeeds, CreditRound } from "../algorithm.ts";
import { rewardToGo, sequenceReward, tokenReward } from "./credit.ts";
import { type KlSettings } from "../terms/kl.ts";

/** A round with the KL subtracted from its rewards, if `kl_in` says so. */
export type Earned<Round> =
  & Omit<Round, "token_reward">
  & {
    reward: number[]; // [N] of each sequence, its tokens' included
    token_reward: number[][]; // [N][T] the same by token: the sequence's own is on its last one
  };

/** @internal */
type Advantage = Assigned["advantage"];
/** How a round's rewards become advantages, apart from the KL. */
export type Advantages<Round, Config> = {
  advantage(round: Earned<Round>, c: Config): Advantage | Assigned;
  /** Applied to the advantages after the KL is subtracted from them, if `kl_in` says so. */
  normalise?(advantage: Advantage, round: Earned<Round>, c: Config): Advantage;
};

/** Credit with the KL, wherever `kl_in` puts it. */
export function creditWithKl<Round extends KlRound, Config extends KlSettings>(
  round: Round,
  c: Config,
  { advantage, normalise = (advantage) => advantage }: Advantages<Round, Config>,
): Assigned {
  const kl = klReward(round, c); // [N][T]
  const reward = sequenceReward(round, kl); // [N]
  const earned = { ...round, reward, token_reward: tokenReward(round, kl) };
  const assigned = advantage(earned, c);
  const credit: Assigned = Array.isArray(assigned) ? { advantage: assigned } : assigned;
  const steered = steeredKl(round, c);
  const metrics = { ...steered.metrics, ...credit.metrics };
  return {
    ...credit,
    ...steered,
    advantage: normalise(lessKl(credit.advantage, round, c), earned, c),
    ...(Object.keys(metrics).length === 0 ? {} : { metrics }),
  };
}

/** What credit needs for the KL: nothing if only the loss has it. */
export function klNeeds(c: KlSettings): KlNeed[] {
  if (c.kl_coef === 0) return [];
  if (c.kl_target !== null) return ["old_logp", "ref_logp", "coef"];
  return c.kl_in === "loss" ? [] : ["old_logp", "ref_logp"];
}

/** What credit may need for the KL. */
export type KlNeed = "old_logp" | "ref_logp" | "coef";
/** What a KL outside the loss, or one with a steered weight, reads of a round. */
export type KlRound = CreditRound & Pick<CreditNeeds, KlNeed>;

/** What the KL adds to each token's reward; 0 unless it is in the reward. [N][T] */
export function klReward(round: KlRound, c: KlSettings): number[][] {
  if (c.kl_coef === 0 || c.kl_in !== "reward") {
    return round.length.map((tokens) => new Array<number>(tokens).fill(0));
  }
  return klTaken(round, c);
}

/**
 * Advantages minus the KL of each token and of later ones, if the KL is in the advantage. [N] or
 * [N][T] -> [N] or [N][T]
 */
function lessKl(
  advantage: number[] | number[][],
  round: KlRound,
  c: KlSettings,
): number[] | number[][] {
  if (c.kl_coef === 0 || c.kl_in !== "advantage") return advantage;
  return rewardToGo(klTaken(round, c), 1).map((row, i) => {
    const earned = advantage[i]!;
    return row.map((kl, t) => (Array.isArray(earned) ? earned[t]! : earned) + kl);
  });
}

/** −weight · KL of each token. [N][T] */
function klTaken({ old_logp, ref_logp, coef }: KlRound, c: KlSettings): number[][] {
  const weight = c.kl_target === null ? c.kl_coef : coef.kl!;
  const k = c.kl_estimator === "k1" ? (d: number) => d : (d: number) => Math.exp(-d) - 1 + d;
  return old_logp.map((row, i) => row.map((logp, t) => -weight * k(logp - ref_logp[i]![t]!)));
}

/** The steered weight of the next round; nothing if the weight is fixed. */
export function steeredKl(round: KlRound, c: KlSettings): Pick<Assigned, "coef" | "metrics"> {
  if (klNeeds(c).length === 0) return {};
  const { old_logp, ref_logp } = round;
  const d = old_logp.flatMap((row, i) => row.map((logp, t) => logp - ref_logp[i]![t]!));
  const total = d.reduce((a, b) => a + b, 0);
  const kl = total / Math.max(old_logp.length, 1); // of a completion
  const metrics = { "policy/kl_ref_completion": kl };
  if (c.kl_target === null) return { metrics };
  const error = Math.min(Math.max(kl / c.kl_target - 1, -0.2), 0.2);
  const next = round.coef.kl! * (1 + error * old_logp.length / c.kl_horizon);
  return { coef: { kl: next }, metrics: { ...metrics, "coef/kl": next } };
}
