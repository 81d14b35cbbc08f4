/**
 * A run of preference learning that is killed, loses its workers, forks or is verified: its
 * versions are a calm run's.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { WorkerLostError } from "../../../engine/mod.ts";
import { Crashed, FakeTrainer, type MemoryStore } from "../../../testing/mod.ts";
import { runView } from "../../../runs/mod.ts";
import { preference } from "../../../flows/preference.ts";
import { type Death, killPoints, onceDurable, unsavedOf, watched } from "./deaths.ts";
import { execute, stores } from "../fixtures.ts";
import { pairsOf, preferenceConfig } from "../preference_fixtures.ts";

/**
 * How engines die, start by start, and operations of the whole history at which the trainer is
 * lost.
 */
type Trouble = { crashes: Death[]; losses: number[] };
type Ended = {
  version: string;
  digest: string;
  evaluations: unknown;
  redone: number;
  /** Of each life that ended in a crash. */
  unsaved: number[];
  moments: string[];
  operations: number;
};

/** Of the kill points and of the mixes of trouble: a gate that is red today is red tomorrow. */
const SEED = 7;
const ROWS = { train: pairsOf(8), eval: pairsOf(4) };
const OVERRIDES = {
  rounds: 12,
  checkpoints: { every_rounds: 4, keep_last: 1 },
  warmup: { rounds: 2, rows_per_round: 2, optimizer: { lr: 0.1 } },
};

/**
 * A trainer that is lost at some operations: at the begin of an odd one, at the end of an even one.
 */
function losing(trainer: FakeTrainer, at: number[], state: { count: number }): FakeTrainer {
  trainer.hook = (_, moment) => {
    if (moment === "begin") state.count++;
    if (!at.includes(state.count) || (moment === "begin") !== (state.count % 2 === 1)) return;
    trainer.forget();
    throw new WorkerLostError("Cannot continue because the worker was killed on purpose");
  };
  return trainer;
}

async function run({ crashes, losses }: Trouble): Promise<Ended> {
  const { store: first, artifacts, dir, model } = await stores();
  const config = preferenceConfig(model, OVERRIDES);
  const state = { count: 0 };
  const unsaved: number[] = [];
  const moments = new Set<string>();
  let store: MemoryStore = first;
  try {
    for (const death of [...crashes, watched(moments)]) {
      store = store.restarted(death);
      const trainer = losing(new FakeTrainer({ artifacts }), losses, state);
      const engine = { backoff: { first_ms: 0, max_ms: 0 } };
      try {
        const { outcome } = await execute(preference, config, {
          store,
          artifacts,
          dir,
          trainer,
          engine,
          rows: ROWS,
        });
        strictEqual(outcome.status, "done", JSON.stringify(outcome));
        break;
      } catch (error) {
        if (!(error instanceof Crashed)) throw error;
        unsaved.push(unsavedOf(store));
      }
    }
    const view = await runView(store, (await store.head("run"))!, { workers: [], metrics: {} });
    const { version, digest } = view.policy!;
    const redone = view.recoveries.reduce((sum, { batches_redone }) => sum + batches_redone, 0);
    const { evaluations } = view;
    const lives = { redone, unsaved, moments: [...moments] };
    return { version, digest: digest!, evaluations, ...lives, operations: state.count };
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

const calm = await run({ crashes: [], losses: [] });

function same({ version, digest, evaluations }: Ended): void {
  deepStrictEqual({ version, digest, evaluations }, {
    version: calm.version,
    digest: calm.digest,
    evaluations: calm.evaluations,
  });
}

Deno.test("preference ends the same after a kill at any drawn row", async () => {
  let redid = 0;
  for (const moment of killPoints(calm.moments, { seed: SEED, count: 30 })) {
    const ended = await run({ crashes: [onceDurable(moment)], losses: [] });
    same(ended);
    strictEqual(ended.unsaved.length, 1, `no engine was killed after ${moment}`);
    strictEqual(ended.redone, ended.unsaved[0], moment);
    redid = Math.max(redid, ended.redone);
  }
  ok(
    redid >= 3,
    `kills redid ${redid} batches at most, and 3 lie before the fourth round's checkpoint`,
  );
});

Deno.test("preference ends the same after any mix of killed engines and workers", async () => {
  const moments = fc.constantFrom(...calm.moments.toSorted());
  const losses = fc.uniqueArray(fc.integer({ min: 1, max: calm.operations }), { maxLength: 1 });
  await fc.assert(
    fc.asyncProperty(
      fc.array(moments, { maxLength: 3 }),
      losses,
      async (kills, losses) => same(await run({ crashes: kills.map(onceDurable), losses })),
    ),
    { numRuns: 20, seed: SEED },
  );
});
