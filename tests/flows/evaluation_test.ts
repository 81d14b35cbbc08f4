import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { passAtK } from "../../flows/mod.ts";
import { evaluate } from "../../flows/evaluate.ts";
import { EvaluateConfig } from "../../configs/mod.ts";
import { FakeSampler } from "../../flows/testing.ts";
import { execute, stores } from "./fixtures.ts";

/** Share of the k-subsets of n samples that hold one of the first c. */
function enumerated(n: number, { c, k }: { c: number; k: number }): number {
  let [hits, all] = [0, 0];
  for (let subset = 0; subset < 2 ** n; subset++) {
    const members = Array.from({ length: n }, (_, i) => i).filter((i) => subset & (1 << i));
    if (members.length !== k) continue;
    all++;
    if (members.some((i) => i < c)) hits++;
  }
  return hits / all;
}

Deno.test("passAtK() is the share of k-subsets that hold a right sample, by enumeration", () => {
  const cases = fc.integer({ min: 1, max: 8 }).chain((n) =>
    fc.record({ n: fc.constant(n), c: fc.integer({ min: 0, max: n }), k: fc.integer({ min: 1, max: n }) })
  );
  fc.assert(fc.property(cases, ({ n, c, k }) => {
    ok(Math.abs(passAtK(n, c, k) - enumerated(n, { c, k })) < 1e-12, `${n} ${c} ${k}`);
  }));
});

Deno.test("evaluate: right samples are those that the first reward gives 1, greedy and sampled apart", async () => {
  const { store, artifacts, dir, model } = await stores();
  const config = EvaluateConfig.parse({
    flow: "evaluate",
    model: { path: model },
    data: { eval: [{ path: "e" }] },
    reward: [{ name: "exact_match" }, { name: "length", unit: "characters", max: 8, weight: 0.5 }],
    evaluate: { problems: 4, samples_per_prompt: 2, greedy: true },
  });
  // Rows answer their own number: 0 and 1 are always right, 2 with its second sample, 3 never.
  const complete = ({ draw, sample }: { draw: number; sample: number }) =>
    draw < 2 || (draw === 2 && sample === 1) ? String(draw) : "no";
  const { outcome } = await execute(evaluate, config, {
    ...{ store, artifacts, dir, samplers: [new FakeSampler({ complete })] },
  });
  strictEqual(outcome.status, "done");
  const { evaluations } = (outcome as unknown as { output: { evaluations: Record<string, unknown>[] } }).output;
  const [greedy, sampled] = evaluations;
  deepStrictEqual(
    [greedy!.name, greedy!.greedy, greedy!.samples_per_problem, greedy!.avg_at_k],
    ["eval_greedy", true, 1, 0.5],
  );
  deepStrictEqual(
    [sampled!.name, sampled!.problems, sampled!.avg_at_k, sampled!.pass_at_1, sampled!.pass_at_k],
    ["eval_sampled", 4, 0.625, 0.625, 0.75],
  );
  deepStrictEqual(store.rows("run").filter(({ kind }) => kind === "round"), []); // No draws of the ledger.
});
