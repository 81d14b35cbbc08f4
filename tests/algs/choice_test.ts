import { deepStrictEqual, ok, strictEqual, throws } from "node:assert/strict";
import type { z } from "zod";
import {
  AlgorithmChoice,
  ALGORITHMS,
  creditOf,
  type CreditRound,
  dropoutOf,
  expressionsOf,
  firstCoef,
  groupMin,
  hasValueModel,
  headOf,
  needsOf,
  needsOfDescribed,
  OnlineAlgorithm,
  ratioBounds,
  SupervisedAlgorithm,
} from "../../algs/mod.ts";

const near = (a: readonly number[], b: readonly number[], tolerance: number) =>
  ok(
    a.length === b.length && a.every((x, i) => Math.abs(x - b[i]!) <= tolerance),
    `${a} is not near ${b}`,
  );

Deno.test("creditOf() gives GRPO's advantage and refuses an algorithm without credit", () => {
  const round = {
    reward: [1, 0],
    group: [0, 0],
    stop: ["stop" as const, "length" as const],
    length: [3, 4],
  };
  const advantage =
    creditOf(AlgorithmChoice.parse({ name: "grpo", std_epsilon: 0 }), round).advantage;
  near(advantage as number[], [Math.SQRT1_2, -Math.SQRT1_2], 1e-15);
  throws(() => creditOf({ name: "sft" }, round), /learns from rows/);
});

Deno.test("needsOf() asks only for what credit and loss read", () => {
  const grpo = (settings: Record<string, number>) =>
    AlgorithmChoice.parse({ name: "grpo", ...settings });
  deepStrictEqual(needsOf(grpo({}), 1), []);
  deepStrictEqual(needsOf(grpo({}), 2), ["old_logp"]);
  deepStrictEqual(needsOf(grpo({ kl_coef: 0.1 }), 1), ["ref_logp"]);
  deepStrictEqual(needsOf({ name: "sft" }, 4), []);
});

Deno.test("ratioBounds() is an algorithm's own clip and its ratio's kind, else PPO's", () => {
  const known = {
    sft: "0.2 0.2 token",
    grpo: "0.2 0.2 token",
    dapo: "0.2 0.28 token",
    dr_grpo: "0.2 0.2 token",
    gspo: "0.0003 0.0004 sequence_mean",
    rloo: "0.2 0.2 sequence",
    cispo: " 4 token",
    sapo: "0.2 0.2 token",
    gdpo: "0.2 0.2 token",
    ppo: "0.2 0.2 token",
    reinforce: "0.2 0.2 token",
    p3o: "0.2 0.2 token",
    dpo: "0.2 0.2 token",
    reward_model: "0.2 0.2 token",
    reinforce_plus_plus: "0.2 0.2 token",
    reinforce_plus_plus_baseline: "0.2 0.2 token",
  };
  const bounded = Object.keys(known).map((name) => {
    const bounds = ratioBounds(AlgorithmChoice.parse({ name }));
    return [name, Object.values(bounds).join(" ")];
  });
  deepStrictEqual(Object.fromEntries(bounded), known);
  deepStrictEqual(ratioBounds(AlgorithmChoice.parse({ name: "grpo", clip_high: 0.5 })).high, 0.5);
  const file = {
    name: "python" as const,
    source: "my.py",
    settings: {},
    value_model: false,
    mask_truncated: false,
    refill_batches_max: 0,
    surplus: "discard" as const,
    sha256: null,
  };
  deepStrictEqual(ratioBounds(file, { clip_high: 3, other: "x" }), {
    low: null,
    high: 3,
    ratio: "token",
  });
  deepStrictEqual(ratioBounds(file, { temperature: 1 }), { low: 0.2, high: 0.2, ratio: "token" });
});

type GrpoChoice = Extract<OnlineAlgorithm, { name: "grpo" }>;

Deno.test("the choices of a configuration come from the table", () => {
  const { name, clip_low, clip_high, kl_coef, aggregation } = AlgorithmChoice.parse({
    name: "grpo",
  }) as GrpoChoice;
  deepStrictEqual([name, clip_low, clip_high, kl_coef, aggregation], [
    "grpo",
    0.2,
    0.2,
    0,
    "sequence_mean",
  ]);
  deepStrictEqual(OnlineAlgorithm.parse({ name: "grpo" }), AlgorithmChoice.parse({ name: "grpo" }));
  strictEqual(SupervisedAlgorithm.safeParse({ name: "grpo" }).success, false);
  strictEqual(AlgorithmChoice.safeParse({ name: "grpo", clip: 0.2 }).success, false);
  // @ts-expect-error Not in the table.
  throws(() => expressionsOf({ name: "nope" }));
  for (const algorithm of Object.values(ALGORITHMS)) {
    for (const [field, schema] of Object.entries(algorithm.config.shape)) {
      ok((schema as z.ZodType).description, `${algorithm.name}.${field} is described`);
    }
  }
});

Deno.test("firstCoef() has the weight of a steered KL, and nothing for one that stays", () => {
  const choice = (settings: Record<string, unknown>) => AlgorithmChoice.parse(settings);
  deepStrictEqual(firstCoef(choice({ name: "grpo", kl_coef: 0.1 })), {});
  deepStrictEqual(firstCoef(choice({ name: "grpo", kl_coef: 0.1, kl_target: 6 })), { kl: 0.1 });
  const reward = { kl_coef: 0.1, kl_target: 6, kl_in: "reward", kl_estimator: "k1" };
  deepStrictEqual(firstCoef(choice({ name: "ppo", ...reward })), { kl: 0.1 });
});

const ROUND: CreditRound = { reward: [1], group: [0], stop: ["stop"], length: [2] };

Deno.test("creditOf() names what the round lacks", () => {
  const ppo = AlgorithmChoice.parse({ name: "ppo" });
  throws(() => creditOf(ppo, ROUND), {
    message: "Cannot assign credit with 'ppo' because it needs values: the round has reward, " +
      "group, stop, length",
  });
});

Deno.test("creditOf() refuses an advantage that is not a number", () => {
  const reinforce = AlgorithmChoice.parse({ name: "reinforce" });
  throws(() => creditOf(reinforce, { ...ROUND, reward: [NaN] }), {
    message: "Cannot train on advantage of sequence 0 as 'reinforce' assigned NaN to it",
  });
});

Deno.test("creditOf() refuses credit of a Python file, which a trainer opens", () => {
  const file = AlgorithmChoice.parse({ name: "python", source: "my.py" });
  throws(() => creditOf(file, ROUND), {
    message:
      "Cannot compute with my.py here because it is in Python and only a trainer opens it, see " +
      "open_algorithm",
  });
});

Deno.test("an algorithm's choice answers for its group, head, value model and dropout", () => {
  const answers = (name: string) => {
    const choice = AlgorithmChoice.parse({ name });
    return [groupMin(choice), headOf(choice), hasValueModel(choice), dropoutOf(choice)];
  };
  deepStrictEqual(answers("ppo"), [1, null, true, false]);
  deepStrictEqual(answers("rloo"), [2, null, false, false]);
  deepStrictEqual(answers("reward_model"), [1, "score", false, false]);
  deepStrictEqual(answers("sft"), [1, null, false, true]);
});

Deno.test("needsOfDescribed() asks for old values only if the value loss reads them", () => {
  const described = { inputs: ["logp", "old_logp"], value_inputs: null, needs: [] };
  deepStrictEqual(needsOfDescribed(described as never, 1), []);
  deepStrictEqual(needsOfDescribed(described as never, 2), ["old_logp"]);
  const critic = { ...described, value_inputs: ["old_values"], needs: ["bootstrap"] };
  deepStrictEqual(needsOfDescribed(critic as never, 1), ["values", "bootstrap"]);
});
