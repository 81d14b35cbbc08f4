import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { endsAs, NO_TROUBLE, SLAB_GROUPS_MAX, troubled } from "./crashing.ts";
import { killPoints, onceDurable } from "./deaths.ts";

/** Of the kill points and of the mixes of trouble: a gate that is red today is red tomorrow. */
const SEED = 7;
const KILLS = { seed: SEED, count: 45 };
const CHECKPOINTS = { every_rounds: 3, keep_last: 1 };
/**
 * The value model warms up for a round, batches are gone through twice, the KL's weight and
 * reference change, cut ones are masked.
 */
const PPO = {
  algorithm: {
    name: "ppo",
    mask_truncated: true,
    kl_coef: 0.1,
    kl_in: "reward",
    kl_estimator: "k1",
    kl_target: 0.01,
    kl_horizon: 40,
  },
  value_model: { optimizer: { lr: 0.2 }, warmup_rounds: 1 },
  reference: { refresh_rounds: 2 },
  trainer: { optimizer: { lr: 0.1 }, updates_per_batch: 2, epochs_per_batch: 2 },
};
/** Most completions are as long as counts or longer, so about half of the groups are replaced. */
const DAPO = {
  algorithm: { name: "dapo", mask_truncated: true },
  reward: [{ name: "length", unit: "characters", max: 3 }],
};
const FLOWS = {
  grpo: { rounds: 7, checkpoints: CHECKPOINTS },
  ppo: { rounds: 5, checkpoints: CHECKPOINTS, ...PPO },
  dapo: { rounds: 6, checkpoints: CHECKPOINTS, ...DAPO },
};
/**
 * Batches between the start and the round before the first checkpoint: a kill there loses them on
 * any machine.
 */
const UNSAVED = {
  grpo: { trainer: 2, critic: 0 },
  ppo: { trainer: 1, critic: 2 }, // The policy waits for a round.
  dapo: { trainer: 2, critic: 0 },
};

for (const [name, overrides] of Object.entries(FLOWS)) {
  const calm = await troubled(NO_TROUBLE, overrides);

  Deno.test(`${name}: the undisturbed run reads what it draws and trains on what has a signal`, () => {
    const draws = 2 * overrides.rounds;
    const filtered = Object.values(calm.ledger.filtered).reduce((sum, count) => sum + count, 0);
    const replaced = name === "dapo" ? filtered : 0;
    deepStrictEqual({ ...calm.ledger, filtered }, {
      read: draws + replaced,
      trained: draws + replaced - filtered,
      filtered,
      stale: 0,
      failed: {},
      pending: 0,
    });
    // The fake sampler's completions depend on the version, and so on every setting that there is:
    // whether a group has a signal is chance. Of DAPO's about half have none.
    ok(calm.ledger.trained > draws / 2, JSON.stringify(calm.ledger));
    ok(name !== "dapo" || filtered > 0, JSON.stringify(calm.ledger));
    deepStrictEqual(calm.recoveries, []);
  });

  Deno.test(`${name}: killed after drawn rows and resumed, it ends with the same versions, weights and ledger`, async () => {
    const redid = { trainer: 0, critic: 0 };
    for (const moment of killPoints(calm.moments, KILLS)) {
      const ended = await troubled({ ...NO_TROUBLE, crashes: [onceDurable(moment)] }, overrides);
      endsAs(calm, ended);
      strictEqual(ended.unsaved.length, 1, `no engine was killed after ${moment}`);
      for (const model of ["trainer", "critic"] as const) {
        const lost = ended.unsaved[0]![model];
        const redone = ended.recoveries.filter(({ group = "trainer" }) => group === model)
          .reduce((sum, { batches_redone }) => sum + batches_redone, 0);
        strictEqual(
          redone,
          lost,
          `killed after ${moment}, the ${model} redid ${redone} batches of ${lost}`,
        );
        redid[model] = Math.max(redid[model], redone);
      }
      // One sampler makes one slab at a time, and the largest is that of the evaluation.
      const again = ended.generated - calm.generated;
      ok(again <= SLAB_GROUPS_MAX, `a kill after ${moment} made ${again} groups again`);
    }
    const { trainer, critic } = UNSAVED[name as keyof typeof UNSAVED];
    ok(
      redid.trainer >= trainer && redid.critic >= critic,
      `kills redid ${JSON.stringify(redid)}: it proves too little`,
    );
  });

  Deno.test(`${name}: any mix of killed engines and lost workers ends with the same versions, weights and ledger`, async () => {
    const moments = fc.constantFrom(...calm.moments.toSorted());
    // One of each kind: a stage that loses its workers three times has spent its budget, as it
    // should.
    const lost = (max: number) =>
      fc.uniqueArray(fc.integer({ min: 1, max: Math.max(max, 1) }), { maxLength: 1 });
    const { trainer, critic } = calm.operations;
    const losses = fc.record({ trainer: lost(trainer), critic: lost(critic), sampler: lost(10) });
    await fc.assert(
      fc.asyncProperty(
        fc.array(moments, { maxLength: 3 }),
        losses,
        async (kills, losses) =>
          endsAs(calm, await troubled({ crashes: kills.map(onceDurable), losses }, overrides)),
      ),
      { numRuns: 30, seed: SEED },
    );
  });
}
