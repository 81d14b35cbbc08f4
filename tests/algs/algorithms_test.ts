import { deepStrictEqual, ok, strictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import {
  AlgorithmChoice,
  ALGORITHMS,
  assignAdvantages,
  defineAlgorithm,
  type EvaluatedStep,
  expressionsOf,
  groupCenter,
  groupZscore,
  leaveOneOut,
  needsOf,
  OnlineAlgorithm,
  SupervisedAlgorithm,
  tokenMean,
  traceAlgorithm,
} from "../../algs/mod.ts";
import { randomStep } from "./steps.ts";
import { TEST_ALGORITHMS } from "./test_losses.ts";
import { runTorch } from "./torch.ts";

const near = (a: readonly number[], b: readonly number[], tolerance: number) =>
  ok(a.length === b.length && a.every((x, i) => Math.abs(x - b[i]!) <= tolerance), `${a} is not near ${b}`);

Deno.test("groupZscore() uses the n - 1 deviation of each group and keeps the order of samples", () => {
  const advantage = groupZscore([1, 10, 0, 30, 0, 0], [7, 8, 7, 8, 7, 7], 0);
  near(advantage, [1.5, -Math.SQRT1_2, -0.5, Math.SQRT1_2, -0.5, -0.5], 1e-15);
});

Deno.test("groupZscore() is all zeros when every reward of a group is equal, and for a group of one", () => {
  deepStrictEqual(groupZscore([1, 1, 1, 0.3], [0, 0, 0, 1], 1e-6), [0, 0, 0, 0]);
  deepStrictEqual(groupZscore([0.1, 0.1, 0.1], [0, 0, 0], 0), [0, 0, 0]);
});

Deno.test("credit ignores a constant added to a group; GRPO's also ignores a scale", () => {
  const reward = [0.3, 1, 0, 2, 5, 4];
  const group = [0, 0, 0, 1, 1, 1];
  const shifted = reward.map((r, i) => r + (group[i] ? 3 : -2));
  const scaled = reward.map((r) => 7 * r);
  for (
    const assign of [
      (r: number[]) => groupZscore(r, group, 1e-6),
      (r: number[]) => groupCenter(r, group),
      (r: number[]) => leaveOneOut(r, group),
    ]
  ) {
    near(assign(shifted), assign(reward), 1e-12);
  }
  near(groupZscore(scaled, group, 0), groupZscore(reward, group, 0), 1e-12);
  near(groupCenter(scaled, group), groupCenter(reward, group).map((a) => 7 * a), 1e-12);
});

Deno.test("leaveOneOut() is groupCenter() times G / (G - 1)", () => {
  const reward = [1, 0, 4, 2, 0, 7];
  const group = [0, 0, 1, 1, 1, 2];
  near(leaveOneOut(reward, group), groupCenter(reward, group).map((a, i) => a * [2, 2, 1.5, 1.5, 1.5, 1][i]!), 1e-15);
});

Deno.test("assignAdvantages() gives GRPO's advantage and refuses an algorithm without credit", () => {
  const round = { reward: [1, 0], group: [0, 0], stop: ["stop" as const, "length" as const], length: [3, 4] };
  const advantage = assignAdvantages(AlgorithmChoice.parse({ name: "grpo", std_epsilon: 0 }), round);
  near(advantage as number[], [Math.SQRT1_2, -Math.SQRT1_2], 1e-15);
  throws(() => assignAdvantages({ name: "sft" }, round), /learns from completions/);
});

Deno.test("needsOf() asks only for what credit and loss read", () => {
  const grpo = (settings: Record<string, number>) => AlgorithmChoice.parse({ name: "grpo", ...settings });
  deepStrictEqual(needsOf(grpo({}), 1), []);
  deepStrictEqual(needsOf(grpo({}), 2), ["old_logp"]);
  deepStrictEqual(needsOf(grpo({ kl_coef: 0.1 }), 1), ["ref_logp"]);
  deepStrictEqual(needsOf({ name: "sft" }, 4), []);
});

Deno.test("defineAlgorithm() types credit's argument by what it needs", () => {
  defineAlgorithm({
    name: "typed",
    config: z.strictObject({ beta: z.number() }),
    credit: {
      needs: ["ref_logp"],
      assign: ({ reward, ref_logp }, { beta }) => ({ advantage: reward.map((r, i) => r - beta * ref_logp[i]![0]!) }),
    },
    loss: ({ logp, advantage }, { beta }) => ({ loss: tokenMean(logp.mul(advantage).mul(beta)) }),
  });
  defineAlgorithm({
    name: "wrong",
    config: z.strictObject({}),
    // @ts-expect-error `values` is not among what it needs.
    credit: { needs: ["ref_logp"], assign: ({ values }) => ({ advantage: values }) },
    loss: ({ logp }) => ({ loss: tokenMean(logp) }),
  });
});

Deno.test("the choices of a configuration come from the table", () => {
  deepStrictEqual(OnlineAlgorithm.parse({ name: "grpo" }), {
    name: "grpo",
    clip_low: 0.2,
    clip_high: 0.2,
    kl_coef: 0,
    std_epsilon: 1e-6,
  });
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

Deno.test("an algorithm is its own file and one line of the table: nothing else names it", async () => {
  const root = new URL("../../", import.meta.url);
  const names = Object.keys(ALGORITHMS).map((name) => new RegExp(`["'\`]${name}["'\`]|\\b${name}\\b(?=[.(])`));
  const named: string[] = [];
  for (const room of ["algs/", "workers/", "engine/"]) {
    for await (const file of sources(new URL(room, root))) {
      const path = file.pathname.slice(root.pathname.length);
      const own = path === "algs/table.ts" || Object.keys(ALGORITHMS).some((name) => path === `algs/${name}.ts`);
      const text = await Deno.readTextFile(file);
      if (!own && names.some((name) => name.test(text))) named.push(path);
    }
  }
  deepStrictEqual(named, []);
});

async function* sources(folder: URL): AsyncGenerator<URL> {
  for await (const entry of Deno.readDir(folder)) {
    if (entry.isDirectory && !entry.name.startsWith("__")) yield* sources(new URL(`${entry.name}/`, folder));
    if (entry.isFile && /\.(ts|py)$/.test(entry.name)) yield new URL(entry.name, folder);
  }
}

/** The policy is the one that sampled: every ratio is 1. */
function onPolicy(step: EvaluatedStep): EvaluatedStep {
  const sequences = step.sequences.map((one) => {
    const { logp, advantage: all } = one.inputs;
    const advantage = (all as number[])[one.mask.indexOf(1)]!;
    return { ...one, inputs: { ...one.inputs, old_logp: logp!, behaviour_logp: logp!, ref_logp: logp!, advantage } };
  });
  return { ...step, sequences };
}

Deno.test("on the first step GRPO, GSPO and CISPO have REINFORCE's gradient", async () => {
  const step = onPolicy(randomStep(5, { pairs: false }));
  const algorithms = [TEST_ALGORITHMS.reinforce!, ALGORITHMS.grpo, TEST_ALGORITHMS.gspo!, TEST_ALGORITHMS.cispo!];
  const cuts = [[[[0, 1, 2, 3, 4, 5]]]];
  const cases = algorithms.map((algorithm) => ({ expression: traceAlgorithm(algorithm, {}).loss, step, cuts }));
  const [reinforce, ...others] = (await runTorch(cases)).map(([outcome]) => outcome!.gradients.logp!.flat());
  ok(Math.max(...reinforce!.map(Math.abs)) > 0.01);
  for (const other of others) near(other, reinforce!, 1e-15);
});

Deno.test("old_logp read as the detached logp gives the gradient of an old_logp column that equals logp", async () => {
  const step = onPolicy(randomStep(6, { pairs: false }));
  const { loss: expression } = traceAlgorithm(ALGORITHMS.grpo, {});
  const bare = {
    ...step,
    sequences: step.sequences.map((one) => ({ ...one, inputs: { ...one.inputs, old_logp: NaN } })),
  };
  const cuts = [[[[0, 1, 2, 3, 4, 5]]]];
  const [column, substituted] = await runTorch([
    { expression, step, cuts },
    { expression, step: bare, cuts, old_is_current: true },
  ]);
  deepStrictEqual(substituted, column);
});

Deno.test("P3O is REINFORCE with weight 1 when every importance weight is 1", async () => {
  const step = onPolicy(randomStep(7, { pairs: false }));
  const plain = defineAlgorithm({
    name: "plain",
    config: z.strictObject({}),
    loss: ({ logp, advantage }) => ({ loss: tokenMean(logp.mul(advantage).neg()) }),
  });
  const cuts = [[[[0, 1, 2, 3, 4, 5]]]];
  const cases = [TEST_ALGORITHMS.p3o!, plain].map((one) => ({ expression: traceAlgorithm(one, {}).loss, step, cuts }));
  const [p3o, reinforce] = (await runTorch(cases)).map(([outcome]) => outcome!);
  strictEqual(p3o!.metrics["policy/ess"], 1);
  near(p3o!.gradients.logp!.flat(), reinforce!.gradients.logp!.flat(), 1e-15);
});
