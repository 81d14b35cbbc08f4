import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { evaluationText } from "../../../cli/display/evaluation_text.ts";
import type { Evaluation } from "../../../flows/mod.ts";

const PROBLEMS: Evaluation = {
  name: "after_greedy",
  problems: 4,
  samples_per_problem: 1,
  graded: 4,
  right: 0,
  failed: 0,
  ungraded: 0,
  failures: {},
  mean_reward: 0,
  avg_at_k: 0,
  pass_at_1: 0,
  pass_at_k: 0,
  pass_at: [0],
  by_problem: { sha256: "0".repeat(64), bytes: 1 },
  greedy: true,
};

Deno.test("evaluationText() shows no sign before a margin or a mean reward that rounds to zero", () => {
  for (const nearly of [-0, -1e-9, -0.00049]) {
    const pairs = { name: "before", pairs: 8, loss: 0.7, pair_accuracy: 0.5, pair_margin: nearly };
    strictEqual(evaluationText(pairs), "0.500 right of 8 pairs, margin 0.000");
    const text = "0.000 right (0 of 4), failed 0, ungraded 0, mean reward 0.000";
    strictEqual(evaluationText({ ...PROBLEMS, mean_reward: nearly }), text);
  }
  const margin = -0.0005001;
  strictEqual(
    evaluationText({ name: "b", pairs: 8, loss: 0.7, pair_accuracy: 0.5, pair_margin: margin }),
    "0.500 right of 8 pairs, margin -0.001",
  );
  const judged = { name: "b", pairs: 0, completions: 9, loss: 0.7, pair_accuracy: 0.5 };
  strictEqual(
    evaluationText({ ...judged, pair_margin: 1 }),
    "0.500 right of 9 completions, margin 1.000",
  );
});

Deno.test("evaluationText() shows pass@k and pass^k of every k up to 8, and beyond of powers of two and the last", () => {
  const shown = (n: number) => {
    const pass_at = Array.from({ length: n }, (_, i) => i / n);
    const passes = { pass_at, pass_hat: n > 1 ? pass_at : undefined };
    const text = evaluationText({ ...PROBLEMS, samples_per_problem: n, ...passes });
    const hats = [...text.matchAll(/pass\^(\d+)/g)].map(([, k]) => Number(k));
    deepStrictEqual(hats, n === 12 ? [2, 4, 8, 12] : pass_at.map((_, i) => i + 1).slice(1));
    return [...text.matchAll(/pass@(\d+)/g)].map(([, k]) => Number(k));
  };
  deepStrictEqual([shown(1), shown(4), shown(8)], [[], [1, 2, 3, 4], [1, 2, 3, 4, 5, 6, 7, 8]]);
  deepStrictEqual(shown(12), [1, 2, 4, 8, 12]);
});
