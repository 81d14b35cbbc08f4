/** Checkpoints and the end of training by what evaluations between rounds found. */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { online } from "../../flows/online.ts";
import type { CheckpointNote } from "../../workers/mod.ts";
import { Crashed, FakeSampler, type MemoryStore } from "../../testing/mod.ts";
import { runView } from "../../runs/mod.ts";
import { type Death, onceDurable, watched } from "./crashes/deaths.ts";
import { execute, onlineConfig, rowsOf, stores } from "./fixtures.ts";

/** Right answers in the evaluation of each round: the third is the best. */
const RIGHT = [0, 1, 2, 4, 3, 2, 1, 0];
const ROWS = { train: rowsOf(16), "eval/math": rowsOf(4, "math") };

/** A run of up to seven rounds whose evaluations are as `RIGHT` says. */
async function ended(overrides: Record<string, unknown>, deaths: Death[] = []) {
  const { store: first, artifacts, dir, model } = await stores();
  const config = onlineConfig(model, {
    rounds: 7,
    evaluate: {
      every_rounds: 1,
      sets: [{ name: "math", data: [{ path: "m" }], reward: [{ name: "exact_match" }] }],
    },
    checkpoints: { every_rounds: 1, keep_last: 1 },
    ...overrides,
  });
  let store: MemoryStore = first;
  const moments = new Set<string>();
  try {
    for (const death of [...deaths, watched(moments)]) {
      store = store.restarted(death);
      let round = 0;
      const sampler = new FakeSampler({
        // Lengths that differ, so that every round trains.
        complete: ({ draw, sample }) =>
          draw < RIGHT[round]! ? String(draw) : "x".repeat(2 + (draw + 3 * sample) % 5),
      });
      sampler.hook = ({ key }) => {
        round = Number(/^round\/(\d+)\/evaluate/.exec(key)?.[1] ?? 0);
      };
      try {
        const options = { store, artifacts, dir, rows: ROWS, samplers: [sampler] };
        const { outcome } = await execute(online, config, options);
        strictEqual(outcome.status, "done", JSON.stringify(outcome));
        break;
      } catch (error) {
        if (!(error instanceof Crashed)) throw error;
      }
    }
    const view = await runView(store, (await store.head("run"))!, { workers: [], metrics: {} });
    const saved = new Map<string, CheckpointNote>();
    for (const { kind, key, value } of store.rows("run")) {
      if (kind === "note/checkpoint") saved.set(key, JSON.parse(value));
      if (kind === "note/checkpoint_dropped") saved.delete(key);
    }
    const dirs = await Array.fromAsync(Deno.readDir(`${dir}/checkpoints`), ({ name }) => name);
    const kept = [...saved.values()].map(({ round, metric }) => ({ round, metric }));
    return { view, kept, dirs: dirs.length, moments: [...moments] };
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

const stop = { metric: "eval/math/pass@1", patience_rounds: 2 };
const keep_best = { metric: "eval/math/pass@1" };
const BEST = { stop, checkpoints: { every_rounds: 1, keep_last: 1, keep_best } };

Deno.test("stop ends training once its metric is no better for patience_rounds", async () => {
  const { view, kept } = await ended({ stop });
  strictEqual(view.round, 5);
  deepStrictEqual(kept.map(({ round }) => round), [5]);
  deepStrictEqual(view.evaluations.at(-1)!.name, "math/round_5_greedy");
  strictEqual((await ended({})).view.round, 7);
});

Deno.test("stop saves the round that it ends, whatever checkpoints.every_rounds says", async () => {
  const { kept, view } = await ended({ stop, checkpoints: { every_rounds: 100, keep_last: 1 } });
  deepStrictEqual([view.round, kept.map(({ round }) => round)], [5, [5]]);
});

Deno.test("stop with min_delta, and with the lowest as the best", async () => {
  strictEqual((await ended({ stop: { ...stop, min_delta: 0.8 } })).view.round, 3);
  strictEqual((await ended({ stop: { ...stop, mode: "min" } })).view.round, 3);
});

Deno.test("keep_best keeps the checkpoint of the best evaluation", async () => {
  const { kept, dirs } = await ended(BEST);
  deepStrictEqual(kept, [{ round: 3, metric: 1 }, { round: 5, metric: 0.5 }]);
  strictEqual(dirs, 2);
});

Deno.test("a kill around a checkpoint changes neither what is kept nor the end", async () => {
  const calm = await ended(BEST);
  const decisive = calm.moments.filter((moment) => /checkpoint|judge_progress/.test(moment));
  ok(decisive.length > 10);
  for (const moment of decisive) {
    const { view, kept, dirs } = await ended(BEST, [onceDurable(moment)]);
    deepStrictEqual([view.round, kept, dirs], [5, calm.kept, 2], `killed after ${moment}`);
    deepStrictEqual(view.policy, calm.view.policy);
  }
});
