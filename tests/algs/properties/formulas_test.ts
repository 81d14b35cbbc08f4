/**
 * Losses by the papers' formulas in plain loops, for those that no peer's own code is held against.
 */
import { ok } from "node:assert/strict";
import {
  ALGORITHMS,
  type AnyAlgorithm,
  evaluate,
  type EvaluatedStep,
  traceAlgorithm,
} from "../../../algs/mod.ts";
import { randomStep } from "./steps.ts";

type Token = Record<
  | "logp"
  | "old_logp"
  | "behaviour_logp"
  | "advantage"
  | "values"
  | "old_values"
  | "returns"
  | "ref_logp",
  number
>;

/** The unmasked tokens of each sequence. */
function tokensOf({ sequences }: EvaluatedStep): Token[][] {
  return sequences.map(({ mask, inputs }) =>
    [...mask.keys()].filter((t) => mask[t]).map((t) =>
      Object.fromEntries(
        Object.entries(inputs).map((
          [name, column],
        ) => [name, typeof column === "number" ? column : column[t]!]),
      ) as Token
    )
  );
}

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
const mean = (values: number[]) => sum(values) / values.length;
const clip = (x: number, low: number, high: number) => Math.min(Math.max(x, low), high);
const logSigmoid = (x: number) => -Math.log(1 + Math.exp(-x));

function expectLoss(
  algorithm: AnyAlgorithm,
  settings: Record<string, unknown>,
  expected: (step: EvaluatedStep) => number,
) {
  for (const seed of [1, 2, 3]) {
    const { loss } = traceAlgorithm(algorithm, settings);
    const step = randomStep(seed, {
      pairs: loss.inputs.includes("score") || loss.nodes.some((n) => n.kind === "pair"),
    });
    const [found, wanted] = [evaluate(loss, step).loss, expected(step)];
    ok(
      Math.abs(found - wanted) < 1e-12 * Math.max(1, Math.abs(wanted)),
      `${JSON.stringify(settings)}: ${found}, ${wanted}`,
    );
  }
}

Deno.test("PPO is the clipped surrogate, with a dual clip at most c times the advantage", () => {
  const surrogate = ({ logp, old_logp, advantage }: Token) => {
    const ratio = Math.exp(logp - old_logp);
    return Math.max(-ratio * advantage, -clip(ratio, 0.8, 1.2) * advantage);
  };
  const all = (step: EvaluatedStep) => tokensOf(step).flat();
  expectLoss(ALGORITHMS.ppo, {}, (step) => mean(all(step).map(surrogate)));
  expectLoss(
    ALGORITHMS.ppo,
    { dual_clip: 1.25 },
    (step) =>
      mean(
        all(step).map((token) =>
          token.advantage < 0
            ? Math.min(surrogate(token), -1.25 * token.advantage)
            : surrogate(token)
        ),
      ),
  );
});

Deno.test("PPO's value loss is half the larger of the two squares, or half the one square", () => {
  const clipped = ({ values, old_values, returns }: Token) => {
    const near = old_values + clip(values - old_values, -0.2, 0.2);
    return 0.5 * Math.max((values - returns) ** 2, (near - returns) ** 2);
  };
  const free = ({ values, returns }: Token) => 0.5 * (values - returns) ** 2;
  for (const [value_clip, square] of [[0.2, clipped], [null, free]] as const) {
    const step = randomStep(5, { pairs: false });
    const loss = evaluate(traceAlgorithm(ALGORITHMS.ppo, { value_clip }).value_loss!, step).loss;
    ok(Math.abs(loss - mean(tokensOf(step).flat().map(square))) < 1e-14);
  }
});

Deno.test("P3O caps weights by the effective sample size and pulls by what is left of 1", () => {
  const pulls = {
    k3: (d: number) => Math.exp(-d) - 1 + d,
    forward: (d: number) => Math.exp(d) - 1 - d,
  };
  for (const pull of ["k3", "forward"] as const) {
    expectLoss(ALGORITHMS.p3o, { pull }, (step) => {
      const tokens = tokensOf(step).flat();
      const w = tokens.map(({ logp, behaviour_logp }) => Math.exp(logp - behaviour_logp));
      const ess = sum(w) ** 2 / (tokens.length * sum(w.map((x) => x * x)));
      ok(ess < 0.99 && ess > 1 / tokens.length);
      return mean(
        tokens.map(({ logp, behaviour_logp, advantage }, i) =>
          -Math.min(w[i]!, ess) * advantage * logp + (1 - ess) * pulls[pull](logp - behaviour_logp)
        ),
      );
    });
  }
});

Deno.test("REINFORCE sums -A log pi over a completion", () => {
  expectLoss(
    ALGORITHMS.reinforce,
    {},
    (step) =>
      mean(
        tokensOf(step).map((tokens) => sum(tokens.map(({ logp, advantage }) => -advantage * logp))),
      ),
  );
});

Deno.test("REINFORCE++ with group baseline adds k2 to the surrogate", () => {
  expectLoss(
    ALGORITHMS.reinforce_plus_plus_baseline,
    { kl_coef: 0.5 },
    (step) =>
      mean(
        tokensOf(step).flat().map(({ logp, old_logp, ref_logp, advantage }) => {
          const ratio = Math.exp(logp - old_logp);
          const policy = Math.max(-ratio * advantage, -clip(ratio, 0.8, 1.2) * advantage);
          return policy + 0.5 * (logp - ref_logp) ** 2 / 2;
        }),
      ),
  );
});

Deno.test("DPO: sigmoid with and without smoothing, ipo, by sums and by means", () => {
  const gaps = (step: EvaluatedStep, whole: (values: number[]) => number) => {
    const rewards = tokensOf(step).map((tokens) =>
      whole(tokens.map(({ logp, ref_logp }) => logp - ref_logp))
    );
    return rewards.flatMap((reward, i) => (i % 2 === 0 ? [reward - rewards[i + 1]!] : []));
  };
  for (const [length_normalised, whole] of [[false, sum], [true, mean]] as const) {
    const settings = { beta: 0.3, length_normalised };
    expectLoss(
      ALGORITHMS.dpo,
      settings,
      (step) => mean(gaps(step, whole).map((gap) => -logSigmoid(0.3 * gap))),
    );
    expectLoss(
      ALGORITHMS.dpo,
      { ...settings, label_smoothing: 0.2 },
      (step) =>
        mean(
          gaps(step, whole).map((gap) =>
            -0.8 * logSigmoid(0.3 * gap) - 0.2 * logSigmoid(-0.3 * gap)
          ),
        ),
    );
    expectLoss(
      ALGORITHMS.dpo,
      { ...settings, loss: "ipo" },
      (step) => mean(gaps(step, whole).map((gap) => (gap - 1 / 0.6) ** 2)),
    );
  }
});

Deno.test("the reward model compares scores beyond the margin, and centres them if asked", () => {
  const pairs = ({ sequences }: EvaluatedStep) =>
    sequences.flatMap(({ inputs }, i) =>
      i % 2 === 0
        ? [{
          chosen: Number(inputs.score),
          rejected: Number(sequences[i + 1]!.inputs.score),
          margin: Number(inputs.margin),
        }]
        : []
    );
  for (const center_coef of [0, 0.1]) {
    expectLoss(
      ALGORITHMS.reward_model,
      { center_coef },
      (step) =>
        mean(
          pairs(step).map(({ chosen, rejected, margin }) =>
            -logSigmoid(chosen - rejected - margin) + center_coef * (chosen + rejected) ** 2
          ),
        ),
    );
  }
});
