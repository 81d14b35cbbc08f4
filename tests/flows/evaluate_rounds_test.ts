/** Evaluation between the rounds of every flow that trains. */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { SupervisedConfig } from "../../configs/mod.ts";
import { tableOf } from "../../data/mod.ts";
import type { GraphDefinition, RecordedMetrics } from "../../engine/mod.ts";
import { online } from "../../flows/online.ts";
import { preference } from "../../flows/preference.ts";
import { supervised } from "../../flows/supervised.ts";
import { runView } from "../../runs/mod.ts";
import { Crashed, FakeSampler, type MemoryStore } from "../../testing/mod.ts";
import { type Death, killPoints, onceDurable, watched } from "./crashes/deaths.ts";
import { execute, onlineConfig, rowsOf, stores } from "./fixtures.ts";
import { pairsOf, preferenceConfig } from "./preference_fixtures.ts";

const SETS = [
  { name: "math", data: [{ path: "m" }], problems: 2 },
  {
    name: "long",
    data: [{ path: "l" }],
    samples_per_prompt: 2,
    greedy: false,
    reward: [{ name: "exact_match" }],
  },
];
const EVALUATE = { every_rounds: 2, sets: SETS };
const completions = tableOf(
  Array.from({ length: 4 }, (_, n) => ({
    row_id: `row-${n}`,
    prompt: `say ${n}`,
    completion: "1",
    answer: "1",
    columns: {},
  })),
  "completions",
);
const ROWS = {
  train: rowsOf(16),
  "eval/math": rowsOf(4, "math"),
  "eval/long": rowsOf(3, "long"),
};

type Flow = {
  definition: GraphDefinition;
  config: (model: string) => unknown;
  rows: Parameters<typeof execute>[2]["rows"];
};

const FLOWS: Record<string, Flow> = {
  online: {
    definition: online as unknown as GraphDefinition,
    config: (model) => onlineConfig(model, { rounds: 5, evaluate: EVALUATE }),
    rows: ROWS,
  },
  supervised: {
    definition: supervised as unknown as GraphDefinition,
    config: (path) =>
      SupervisedConfig.parse({
        flow: "supervised",
        rounds: 5,
        rows_per_round: 2,
        model: { path },
        data: { train: [{ path: "t" }] },
        reward: [{ name: "length", unit: "characters", max: 8 }],
        trainer: { optimizer: { lr: 0.1 } },
        checkpoints: { every_rounds: 2, keep_last: 1 },
        evaluate: { ...EVALUATE, loss: true },
      }),
    rows: { train: completions, "eval/math": completions, "eval/long": completions },
  },
  preference: {
    definition: preference as unknown as GraphDefinition,
    config: (model) =>
      preferenceConfig(model, {
        rounds: 5,
        data: { train: [{ path: "t" }] },
        evaluate: {
          every_rounds: 2,
          sets: [{ name: "math", data: [{ path: "m" }], pairs: 2 }],
        },
      }),
    rows: { train: pairsOf(8), "eval/math": pairsOf(4, "math") },
  },
};

type Ended = {
  view: Awaited<ReturnType<typeof runView>>;
  metrics: { round: number | null; name: string; value: number }[];
  started_again: string[];
};

/** A run of a flow from its first engine to its last. */
async function ended(
  { definition, config, rows }: Flow,
  deaths: Death[] = [],
  moments = new Set<string>(),
): Promise<Ended> {
  const { store: first, artifacts, dir, model } = await stores();
  let store: MemoryStore = first;
  const started_again: string[] = [];
  try {
    for (const death of [...deaths, watched(moments)]) {
      store = store.restarted(death);
      const sampler = new FakeSampler();
      sampler.hook = ({ op, key }, moment) => {
        const done = store.rows("run").some((row) => row.kind === "result" && row.key === key);
        if (moment === "begin" && op === "generate" && done) started_again.push(key);
      };
      try {
        const options = { store, artifacts, dir, rows, samplers: [sampler] };
        const { outcome } = await execute(definition, config(model), options);
        strictEqual(outcome.status, "done", JSON.stringify(outcome));
        break;
      } catch (error) {
        if (!(error instanceof Crashed)) throw error;
      }
    }
    const view = await runView(store, (await store.head("run"))!, { workers: [], metrics: {} });
    const metrics = store.rows("run").filter(({ kind }) => kind === "metrics").flatMap((row) => {
      const { round, metrics } = JSON.parse(row.value) as RecordedMetrics;
      return Object.entries(metrics).map(([name, value]) => ({ round, name, value }));
    });
    return { view, metrics, started_again };
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

const NAMES: Record<string, string[]> = {
  online: ["greedy math", "sampled long"],
  supervised: ["greedy math", "sampled long", "loss math", "loss long"],
  preference: [" math"],
};

for (const [name, flow] of Object.entries(FLOWS)) {
  const moments = new Set<string>();
  const calm = await ended(flow, [], moments);

  Deno.test(`${name}: every set has one result before, every 2 rounds and at the end`, () => {
    const expected = ["before", "round_2", "round_4", "round_5"].flatMap((moment) =>
      NAMES[name]!.map((one) => {
        const [label, set] = one.split(" ");
        return `${set}/${moment}${label === "" ? "" : `_${label}`}`;
      })
    );
    const names = calm.view.evaluations.map((one) => one.name as string);
    deepStrictEqual(names.toSorted(), expected.toSorted());
    ok(calm.view.recoveries.length === 0, JSON.stringify(calm.view.recoveries));
  });

  Deno.test(`${name}: a metric has one name and one value in every evaluated round`, () => {
    const metric = name === "preference" ? "eval/math/pair_accuracy" : "eval/math/mean_reward";
    const rounds = calm.metrics.filter((one) => one.name === metric).map(({ round }) => round);
    deepStrictEqual(rounds, [null, 2, 4, 5]);
    const of = (wanted: string) => calm.metrics.filter((one) => one.name === wanted).length;
    if (name !== "preference") strictEqual(of("eval/long/pass_at_2"), 4);
    if (name === "supervised") strictEqual(of("eval/math/loss"), 4);
  });

  Deno.test(`${name}: a kill repeats no evaluation and rolls nothing back`, async () => {
    for (const moment of killPoints([...moments], { seed: 7, count: 15 })) {
      const { view, started_again } = await ended(flow, [onceDurable(moment)]);
      deepStrictEqual(view.evaluations, calm.view.evaluations, moment);
      deepStrictEqual(view.policy, calm.view.policy, moment);
      deepStrictEqual(started_again, [], moment);
      const back = view.recoveries.filter(({ cause }) => cause === "other_version");
      deepStrictEqual(back, [], `killed after ${moment}`);
    }
  });
}
