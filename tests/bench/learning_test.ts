import { deepStrictEqual, match, ok, strictEqual, throws } from "node:assert/strict";
import { ALGORITHMS } from "../../algs/mod.ts";
import { learningOptions } from "../../bench/learning.ts";
import { learningTable, seedResult } from "../../bench/learning_docs.ts";
import { learned, RoundWatch } from "../../bench/learning_run.ts";
import type { EngineEvent } from "../../engine/mod.ts";

type Body = EngineEvent extends infer E ? E extends unknown ? Omit<E, "run" | "at_ms"> : never
  : never;

const REWARDS = { ...learned("grpo"), rows: null };

Deno.test("RoundWatch reads rounds alone, and ends the run when one spends the budget", () => {
  let now = 0;
  const watch = new RoundWatch(REWARDS, 10, () => now);
  const on = (body: Body) => watch.on({ run: "r", at_ms: 0, ...body } as EngineEvent);
  const started = (key: string) =>
    on({ type: "stage_started", key, stage: "s", runs_on: "engine", phase: "other", attempt: 1 });
  const generated = (key: string, samples: number) =>
    on({ type: "note", kind: "note/generated", key, value: { groups: 1, samples, tokens: 9 } });
  const closed = (loop: string, round: number) =>
    on({ type: "round_closed", loop, round, times: 9, carried: {}, tally: {}, total: {} });
  started("step/1/train");
  closed("step", 1); // The warm-up.
  generated("before_greedy/generate_slab#0", 100); // An evaluation.
  now = 5000;
  for (const [round, reward] of [[1, 0.25], [2, 0.5], [3, 0.75]] as const) {
    started(`round/${round}/draw_prompts`);
    generated(`round/${round}/generate_slab#0`, 4);
    on({
      type: "metrics",
      key: `round/${round}/assign_credit`,
      metrics: { "reward/mean": reward },
    });
    on({ type: "metrics", key: `round/${round}/train_policy`, metrics: { "policy/loss": 1 } });
    now += 1000;
    strictEqual(watch.signal.aborted, false);
    closed("round", round);
  }
  strictEqual(watch.signal.aborted, true);
  generated("round/4/generate_slab#0", 4);
  closed("round", 4);
  deepStrictEqual(watch.curve, [
    { round: 1, samples: 4, seconds: 1, value: 0.25 },
    { round: 2, samples: 8, seconds: 2, value: 0.5 },
    { round: 3, samples: 12, seconds: 3, value: 0.75 },
  ]);
});

Deno.test("RoundWatch of a supervised loop counts rows and ends with the last round", () => {
  const watch = new RoundWatch({ ...learned("sft"), rows: 64 }, null, () => 0);
  const on = (body: Body) => watch.on({ run: "r", at_ms: 0, ...body } as EngineEvent);
  for (const [round, loss] of [[1, Math.log(4)], [2, Math.log(2)]] as const) {
    on({
      type: "stage_started",
      key: `step/${round}/train`,
      stage: "s",
      runs_on: "engine",
      phase: "other",
      attempt: 1,
    });
    on({ type: "metrics", key: `step/${round}/train`, metrics: { "policy/loss": loss } });
    strictEqual(watch.signal.aborted, false);
    on({ type: "round_closed", loop: "step", round, times: 2, carried: {}, tally: {}, total: {} });
  }
  strictEqual(watch.signal.aborted, true);
  deepStrictEqual(watch.curve.map(({ samples, value }) => [samples, value.toFixed(6)]), [[
    64,
    "0.250000",
  ], [
    128,
    "0.500000",
  ]]);
});

Deno.test("learned() knows what each algorithm is judged by", () => {
  const labels = Object.keys(ALGORITHMS).map((name) => [name, learned(name).label]);
  const { sft, dpo, kto, reward_model, ...online } = Object.fromEntries(labels) as Record<
    string,
    string
  >;
  deepStrictEqual([dpo, reward_model], ["pairs told apart", "pairs told apart"]);
  strictEqual(kto, "completions told apart");
  match(sft!, /probability/);
  deepStrictEqual(new Set(Object.values(online)), new Set(["mean reward"]));
});

Deno.test("seedResult() is the mean of the last five rounds minus that of the first five", () => {
  const curve = [0, 0, 0.1, 0.2, 0.2, 0.9, 0.6, 0.7, 0.8, 0.9, 1].map((value, i) => ({
    round: i + 1,
    samples: i,
    seconds: 2 * i,
    value,
  }));
  deepStrictEqual(seedResult(curve), { first: 0.1, last: 0.8, gain: 0.7, seconds: 20, rounds: 11 });
});

Deno.test("learningTable() has a row for each algorithm, and says where a seed was not run", () => {
  const result = (first: number, last: number, seconds: number) => ({
    first,
    last,
    gain: last - first,
    seconds,
    rounds: 9,
  });
  const recorded: Parameters<typeof learningTable>[0] = [
    {
      algorithm: "a",
      columns: ["samples", "mean reward"],
      results: { 1: result(0.1, 0.5, 30.4), 2: result(0.2, 0.5, 31) },
    },
    {
      algorithm: "b",
      columns: ["samples", "pairs told apart"],
      results: { 1: result(0.3, 0.6, 40) },
    },
  ];
  strictEqual(
    learningTable(recorded),
    [
      "| algorithm | what | seed 1 | seed 2 | smallest gain | seconds |",
      "| --- | --- | --- | --- | --- | --- |",
      "| [`a`](algorithms/curves/a.svg) | mean reward | 0.10 to 0.50 | 0.20 to 0.50 | 0.30 | 31 |",
      "| [`b`](algorithms/curves/b.svg) | pairs told apart | 0.30 to 0.60 | – | 0.30 | 40 |",
    ].join("\n"),
  );
});

Deno.test("bench learning reads its flags, and lists the choices for a wrong one", () => {
  const { seeds, algorithms, budget, write } = learningOptions([
    "--seeds",
    "101,102",
    "--algorithms",
    "grpo",
    "--write",
  ]);
  deepStrictEqual({ seeds, algorithms, write }, {
    seeds: [101, 102],
    algorithms: ["grpo"],
    write: true,
  });
  ok(budget > 1000);
  deepStrictEqual([learningOptions([]).seeds, learningOptions([]).write], [[1, 2, 3], false]);
  for (
    const args of [["--seeds", "a"], ["--algorithms", "grop"], ["--budget", "0"], ["grpo"], [
      "--seeds",
      "1.5",
    ]]
  ) {
    throws(() => learningOptions(args), /there are --seeds.*--algorithms with some of .*grpo/);
  }
});
