/**
 * What rewards say beside a score: nothing to grade by, and what is right. In evaluations and in
 * training, in both languages.
 */
import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { EvaluateConfig } from "../../../../configs/mod.ts";
import { tableOf } from "../../../../data/mod.ts";
import { type Evaluation, passAtK, passHatK } from "../../../../flows/mod.ts";
import { type RunView, runView } from "../../../../runs/mod.ts";
import { evaluate } from "../../../../flows/evaluate.ts";
import { online } from "../../../../flows/online.ts";
import { FakeSampler } from "../../../../testing/mod.ts";
import { REWARDS } from "../../../../rewards/mod.ts";
import type { Operator } from "../../../../workers/mod.ts";
import { execute, onlineConfig, scoredItem, stores } from "../../fixtures.ts";

type Answer = { outcome: "ok"; score: number; metrics?: Record<string, number> } | {
  outcome: "none";
};
type Verdict = number | { score: number; metrics: { right: number } } | null;

const PYTHON = [{ name: "python", source: "/x/my.py:judge" }];

/** Reward processes that answer a completion as `says` does; null: the function returned None. */
function pool(says: (completion: string) => Verdict): Operator {
  const answer = (verdict: Verdict): Answer => {
    if (verdict === null) return { outcome: "none" };
    return { outcome: "ok", ...(typeof verdict === "number" ? { score: verdict } : verdict) };
  };
  return {
    call(_, args) {
      const { items } = args as { items: { id: string; completion: string }[] };
      const results = items.map(({ id, completion }) =>
        scoredItem({ id, ...answer(says(completion)) })
      );
      return Promise.resolve({ outputs: [{ results }], blobs: [], generation: 1 });
    },
  };
}

/**
 * The shipped reward `length`, saying something else while `work` runs: a reward in TypeScript of
 * one's own.
 */
async function withLength<T>(
  says: (completion: string) => Verdict,
  work: () => Promise<T>,
): Promise<T> {
  const { length } = REWARDS as { length: object };
  const shipped = { ...length };
  const score = ({ completion }: { completion: string }) => says(completion);
  Object.assign(length, { score, right_at: 0.5, says_right: true });
  try {
    return await work();
  } finally {
    Object.assign(length, { right_at: null, says_right: undefined }, shipped);
  }
}

type Work = (reward: object[], pool: Operator | undefined) => Promise<void>;

/** The same reward once as a function in Python, once in TypeScript. */
async function inBothLanguages(says: (completion: string) => Verdict, work: Work): Promise<void> {
  await work(PYTHON, pool(says));
  await withLength(says, () => work([{ name: "length" }], undefined));
}

/** Two samples for each of four problems; completions are `draw.sample`. */
async function evaluated(reward: object[], pool: Operator | undefined): Promise<Evaluation> {
  const { store, artifacts, dir, model } = await stores();
  const config = EvaluateConfig.parse({
    flow: "evaluate",
    model: { path: model },
    reward,
    data: { eval: [{ path: "e" }], on_long_prompt: "unchecked" },
    evaluate: { samples_per_prompt: 2, greedy: false },
  });
  const rows = Array.from(
    { length: 4 },
    (_, n) => ({ row_id: `row-${n}`, prompt: "p", columns: {} }),
  );
  const complete = ({ draw, sample }: { draw: number; sample: number }) => `${draw}.${sample}`;
  const places = {
    store,
    artifacts,
    dir,
    samplers: [new FakeSampler({ complete })],
    rows: { eval: tableOf(rows, "r") },
  };
  const { outcome } = await execute(evaluate, config, { ...places, ...(pool && { pool }) });
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  await Deno.remove(dir, { recursive: true });
  return (outcome as unknown as { output: { evaluations: Evaluation[] } }).output.evaluations[0]!;
}

Deno.test("evaluate takes what a reward says of `right` before its score", async () => {
  // High scores that are not right, and low ones that are.
  const says = (text: string) =>
    text.startsWith("0") || text.endsWith(".1")
      ? { score: 0.9, metrics: { right: 0 } }
      : { score: 0.1, metrics: { right: 1 } };
  await inBothLanguages(says, async (reward, pool) => {
    const { right, graded, avg_at_k, mean_reward } = await evaluated(reward, pool);
    deepStrictEqual([right, graded, avg_at_k], [3, 8, 3 / 8]);
    strictEqual(Math.abs(mean_reward - (5 * 0.9 + 3 * 0.1) / 8) < 1e-12, true);
  });
});

Deno.test("evaluate takes the score of samples without `right`", async () => {
  const says = (text: string) =>
    text.endsWith(".0") ? { score: 0.9, metrics: { right: 0 } } : Number(text[0]) % 2;
  await inBothLanguages(says, async (reward, pool) => {
    const { right, graded } = await evaluated(reward, pool);
    deepStrictEqual([right, graded], [2, 8]); // The second samples of problems 1 and 3.
  });
});

Deno.test("evaluate counts a sample without a score as ungraded, not failed", async () => {
  const says = (text: string) => text === "0.0" || text.startsWith("3") ? null : 1;
  await inBothLanguages(says, async (reward, pool) => {
    const { graded, ungraded, failed, failures, right, mean_reward, avg_at_k } = await evaluated(
      reward,
      pool,
    );
    deepStrictEqual([graded, ungraded, failed, failures], [5, 3, 0, { reward_none: 3 }]);
    deepStrictEqual([right, mean_reward, avg_at_k], [5, 1, 1]);
  });
});

Deno.test("evaluate counts samples to which only other rewards apply as undecided", async () => {
  const says = (text: string) =>
    text === "0.0" || text.startsWith("3") ? null : text === "1.0" ? 0 : 1;
  const rewards = [...PYTHON, { name: "length", max: 4, prefer: "long", unit: "characters" }];
  const { graded, ungraded, right, undecided, avg_at_k, pass_at } = await evaluated(
    rewards,
    pool(says),
  );
  deepStrictEqual([graded, ungraded, right, undecided], [8, 0, 4, 3]);
  // Problem 0 has one sample that is decided, problem 3 none.
  deepStrictEqual([avg_at_k, pass_at], [(1 + 1 / 2 + 1) / 3, [(1 + 1 / 2 + 1) / 3, 1]]);
  const none = await evaluated(rewards, pool(() => null));
  deepStrictEqual([none.graded, none.right, none.avg_at_k, none.pass_at], [8, null, null, null]);
});

/** Two rounds of two groups; fake completions have 1 to 8 characters. */
async function trained(reward: object[], pool: Operator | undefined, rollouts: object) {
  const { store, artifacts, dir, model } = await stores();
  const config = onlineConfig(model, {
    rounds: 2,
    reward,
    rollouts: { slab_groups: 1, ...rollouts },
  });
  const { outcome } = await execute(online, config, {
    store,
    artifacts,
    dir,
    ...(pool && { pool }),
  });
  await Deno.remove(dir, { recursive: true });
  const view: RunView = await runView(store, (await store.head("run"))!, {
    workers: [],
    metrics: {},
  });
  return { outcome: JSON.stringify(outcome), status: outcome.status, ledger: view.ledger };
}

Deno.test("training drops the group of an ungraded sample under its own name", async () => {
  let calls = 0;
  const says = (text: string) => calls++ === 0 ? null : text.length / 8;
  await inBothLanguages(says, async (reward, pool) => {
    calls = 0;
    const { status, ledger } = await trained(reward, pool, { failed_fraction_max: 0.5 });
    deepStrictEqual([status, ledger.failed, ledger.pending], ["done", { reward_none: 1 }, 0]);
  });
  await inBothLanguages(() => null, async (reward, pool) => {
    const { status, outcome } = await trained(reward, pool, {});
    strictEqual(status, "failed");
    match(
      outcome,
      /2 of 2 groups failed, more than rollouts\.failed_fraction_max allows: draw \d failed with reward_none/,
    );
  });
});

Deno.test("training: with drop_sample an ungraded sample is left out alone", async () => {
  let calls = 0;
  const says = (text: string) => calls++ === 0 ? null : text.length / 8;
  await inBothLanguages(says, async (reward, pool) => {
    calls = 0;
    const { status, ledger } = await trained(reward, pool, { on_failed_sample: "drop_sample" });
    deepStrictEqual([status, ledger.failed, ledger.read], ["done", {}, 4]);
  });
});

/** Shares of the k-subsets of n samples that hold one of the first c, and that hold only those. */
function enumerated(n: number, { c, k }: { c: number; k: number }): { some: number; only: number } {
  let [some, only, all] = [0, 0, 0];
  for (let subset = 0; subset < 2 ** n; subset++) {
    const members = Array.from({ length: n }, (_, i) => i).filter((i) => subset & (1 << i));
    if (members.length !== k) continue;
    all++;
    if (members.some((i) => i < c)) some++;
    if (members.every((i) => i < c)) only++;
  }
  return { some: some / all, only: only / all };
}

Deno.test("passAtK() and passHatK() are the shares of k-subsets with a right sample, and with only such", () => {
  const cases = fc.integer({ min: 1, max: 8 }).chain((n) =>
    fc.record({
      n: fc.constant(n),
      c: fc.integer({ min: 0, max: n }),
      k: fc.integer({ min: 1, max: n }),
    })
  );
  fc.assert(fc.property(cases, ({ n, c, k }) => {
    const { some, only } = enumerated(n, { c, k });
    ok(Math.abs(passAtK(n, c, k) - some) < 1e-12, `${n} ${c} ${k}`);
    ok(Math.abs(passHatK(n, c, k) - only) < 1e-12, `${n} ${c} ${k}`);
  }));
});
