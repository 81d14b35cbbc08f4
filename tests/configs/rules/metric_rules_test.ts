import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { FLOWS, metricName } from "../../../configs/mod.ts";
import { brokenRules } from "../../../configs/rules/rules.ts";
import type { Blocks } from "../../../configs/rules/rule_blocks.ts";

const sizes = { rounds: 4, prompts_per_round: 2, samples_per_prompt: 2 };
const online = (more: object): Blocks =>
  FLOWS.online.parse({
    flow: "online",
    ...sizes,
    model: { path: "m" },
    data: { train: [{ path: "t" }], eval: [{ path: "e" }] },
    algorithm: { name: "grpo" },
    reward: [{ name: "exact_match" }],
    ...more,
  });
const best = (metric: string) => ({ checkpoints: { keep_best: { metric } } });
const messages = (more: object) => brokenRules(online(more)).map(({ message }) => message);

Deno.test("metricName() writes pass@8 and pass^8 as they are recorded", () => {
  strictEqual(metricName("eval/gsm8k/pass@8"), "eval/gsm8k/pass_at_8");
  strictEqual(metricName("eval/gsm8k/pass^8"), "eval/gsm8k/pass_hat_8");
});

Deno.test("keep_best takes a metric of the rounds, and of the loss", () => {
  for (const metric of ["reward/mean", "reward/exact_match/mean", "policy/clip_fraction"]) {
    deepStrictEqual(messages(best(metric)), []);
  }
  const [misspelt] = messages(best("reward/maen"));
  match(misspelt!, /^is reward\/maen, which no round has \(did you mean reward\/mean\?\); its/);
});

Deno.test("keep_best takes any metric where code in Python may report it", () => {
  const python = { algorithm: { name: "python", source: "a.py" } };
  deepStrictEqual(messages({ ...best("mine"), ...python }), []);
});

Deno.test("keep_best and stop by an evaluation need one between rounds", () => {
  const [never] = messages({ ...best("eval/pass@1"), evaluate: {} });
  match(never!, /^is eval\/pass@1, which rounds have only if they are evaluated: set evaluate\./);
  const stop = { metric: "eval/pass_at_1", patience_rounds: 1 };
  deepStrictEqual(messages({ stop }).length, 1);
  const evaluate = { every_rounds: 5 };
  deepStrictEqual(messages({ stop, evaluate, ...best("eval/pass@1") }), []);
  const [training] = messages({ stop: { ...stop, metric: "reward/mean" }, evaluate });
  match(training!, /^is reward\/mean, which no round has; its metrics are eval\/avg_at_1, /);
});

Deno.test("keep_best by the loss on held-out rows is for supervised training", () => {
  const supervised = FLOWS.supervised.parse({
    flow: "supervised",
    rounds: 4,
    rows_per_round: 2,
    model: { path: "m" },
    data: { train: [{ path: "t" }], eval: [{ path: "e", name: "held" }] },
    evaluate: { loss: true, every_rounds: 2 },
    checkpoints: { every_rounds: 2, keep_best: { metric: "eval/held/loss", mode: "min" } },
  });
  deepStrictEqual(brokenRules(supervised), []);
});

Deno.test("sets of files and pairs of a task exclude each other", () => {
  const preference = FLOWS.preference.parse({
    flow: "preference",
    rounds: 1,
    pairs_per_round: 1,
    model: { recipe: "tiny_qwen" },
    task: {},
    evaluate: { sets: [{ name: "a", data: [{ path: "a" }] }] },
  });
  match(brokenRules(preference as unknown as Blocks)[0]!.message, /^is given together with task, /);
});
