import {
  deepStrictEqual,
  match,
  notDeepStrictEqual,
  ok,
  strictEqual,
  throws,
} from "node:assert/strict";
import { OnlineConfig } from "../../configs/mod.ts";
import { graph } from "../../engine/mod.ts";
import { preparePolicy, type ScoredGroup, trainedOn } from "../../flows/mod.ts";
import { online } from "../../flows/online.ts";
import { Crashed, FakeSampler } from "../../testing/mod.ts";
import { type Death, killPoints, onceDurable, watched } from "./crashes/deaths.ts";
import { execute, onlineConfig, stores } from "./fixtures.ts";

const NORMALISED = {
  rounds: 4,
  reward: [{ name: "length", unit: "characters", max: 8, normalise: {} }],
};
const samplers = () => [
  new FakeSampler({ complete: ({ draw, sample }) => "1".repeat(1 + (sample * draw) % 7) }),
];

/** What rounds carried and trained on, killed at these moments and resumed. */
async function ran(overrides: Record<string, unknown>, deaths: Death[] = []) {
  const { store: first, artifacts, dir, model } = await stores();
  const moments = new Set<string>();
  let store = first;
  try {
    for (const death of [...deaths, watched(moments)]) {
      store = store.restarted(death);
      try {
        const places = { store, artifacts, dir, samplers: samplers() };
        const { outcome } = await execute(online, onlineConfig(model, overrides), places);
        strictEqual(outcome.status, "done", JSON.stringify(outcome));
        break;
      } catch (error) {
        if (!(error instanceof Crashed)) throw error;
      }
    }
    const values = (test: (row: { kind: string; key: string }) => boolean) =>
      store.rows("run").filter(test).map(({ value }) => JSON.parse(value));
    const carried = values(({ kind }) => kind === "round").map(({ carried }) => carried.running);
    const normalised = values(({ kind, key }) =>
      kind === "result" && key.endsWith("/normalise_rewards")
    ).map(({ output }) => output as { scored: ScoredGroup[]; metrics: Record<string, number> });
    return { carried, normalised, moments: [...moments] };
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("rounds carry the running scores of all rounds so far", async () => {
  const { carried, normalised } = await ran(NORMALISED);
  deepStrictEqual(carried.map(({ length }) => length.count), [4, 8, 12, 16]);
  const [{ scored, metrics }] = normalised as [typeof normalised[0]];
  const { mean, m2, count } = carried[0].length;
  const [group] = scored as [ScoredGroup];
  const wanted = group.parts.length!.map((score) =>
    (score! - mean) / (Math.sqrt(m2 / count) + 1e-8)
  );
  deepStrictEqual(group.rewards, wanted);
  deepStrictEqual(metrics["reward/mean"], metrics["reward/length/mean"], "as they were");
});

for (
  const [name, more] of Object.entries({
    grpo: {},
    dapo: { algorithm: { name: "dapo", refill_batches_max: 3, surplus: "rescore" } },
  })
) {
  Deno.test(`running scores of ${name} are exact after kills`, async () => {
    const overrides = { ...NORMALISED, ...more };
    const calm = await ran(overrides);
    notDeepStrictEqual(calm.carried[0], calm.carried[1]);
    const points = killPoints(calm.moments, { seed: 5, count: 6 }).slice(-6);
    for (const moment of points) {
      const killed = await ran(overrides, [onceDurable(moment)]);
      deepStrictEqual([moment, killed.carried, killed.normalised], [
        moment,
        calm.carried,
        calm.normalised,
      ]);
    }
  });
}

Deno.test("a graph without it is the same as before", () => {
  ok(!online.build(onlineConfig("m")).draw().includes("normalise"));
  match(online.build(onlineConfig("m", NORMALISED)).draw(), /normalise_rewards/);
});

Deno.test("a custom graph that carries no running scores refuses a normalised reward", () => {
  const custom = graph("custom", OnlineConfig, (g, config) => {
    const { path: model_path } = config.model;
    const policy = g.stage(preparePolicy, { model_path, optimizer: config.trainer.optimizer });
    return trainedOn(g, config, { scored: g.constant([]), policy, reference: policy });
  });
  throws(
    () => custom.build(onlineConfig("m", NORMALISED)),
    /Cannot train on a round because a reward has `normalise`/,
  );
  custom.build(onlineConfig("m"));
});
