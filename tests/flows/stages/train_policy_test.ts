import { deepStrictEqual } from "node:assert/strict";
import { stepMetrics } from "../../../flows/stages/train_policy.ts";
import type { StepRecord } from "../../../workers/mod.ts";

const TAKEN: StepRecord = {
  loss: 0.5,
  grad_norm: 2,
  lr: 0.1,
  n_tokens: 7,
  n_sequences: 2,
  micro_batches: 1,
  metrics: { "policy/ratio": 1 },
};
const SKIPPED: StepRecord = {
  ...TAKEN,
  loss: null,
  grad_norm: null,
  metrics: {},
  skipped: { cause: "loss", node: "3 (exp)", sequence: 1, token: 4 },
};
const SHOWN = { "policy/loss": 0.5, "optim/grad_norm": 2, "optim/lr": 0.1, "policy/ratio": 1 };

Deno.test("stepMetrics() shows the last step taken, and counts skipped ones", () => {
  deepStrictEqual(stepMetrics({ steps: [TAKEN, TAKEN] }), { ...SHOWN, "perf/trained_tokens": 14 });
  deepStrictEqual(stepMetrics({ steps: [TAKEN, SKIPPED, SKIPPED] }), {
    ...SHOWN,
    "optim/skipped": 2,
    "perf/trained_tokens": 7,
  });
});

Deno.test("stepMetrics() of steps that were all skipped has no loss", () => {
  const none = { "optim/lr": 0.1, "optim/skipped": 1, "perf/trained_tokens": 0 };
  deepStrictEqual(stepMetrics({ steps: [SKIPPED] }), none);
  deepStrictEqual(stepMetrics({ group: "critic", steps: [SKIPPED] }), {
    "optim/value_lr": 0.1,
    "optim/value_skipped": 1,
  });
});

Deno.test("stepMetrics() shows the loss scale of the last step taken", () => {
  const steps = [{ ...TAKEN, loss_scale: 4 }, { ...TAKEN, loss_scale: 2 }];
  const shown = { ...SHOWN, "optim/loss_scale": 2, "perf/trained_tokens": 14 };
  deepStrictEqual(stepMetrics({ steps }), shown);
  deepStrictEqual(stepMetrics({ steps: [...steps, { ...SKIPPED, loss_scale: 1 }] }), {
    ...shown,
    "optim/skipped": 1,
  });
});
