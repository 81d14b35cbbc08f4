/**
 * What becomes of usable groups past the end of a round: discarded, reused, or reused as before
 * there was a choice.
 */
import { deepStrictEqual, match, notStrictEqual, ok, strictEqual } from "node:assert/strict";
import {
  AlgorithmChoice,
  evaluate,
  type EvaluatedSequence,
  expressionsOf,
  type Surplus,
} from "../../../algs/mod.ts";
import { Batch, decodeColumn, decodeSlab } from "../../../data/mod.ts";
import { type ArtifactStore, type RoundRecord } from "../../../engine/mod.ts";
import { FakeSampler, type MemoryStore } from "../../../testing/mod.ts";
import { ledgerOf } from "../../../flows/mod.ts";
import { forkRun } from "../../../runs/mod.ts";
import { online } from "../../../flows/online.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { execute, onlineConfig, stores } from "../fixtures.ts";

const dapo = (surplus: Surplus) => ({ name: "dapo", refill_batches_max: 3, surplus });

/**
 * Three of four groups have completions of two lengths: rounds of two draw two batches, and one
 * group is past their end.
 */
const samplers = () => [
  new FakeSampler({
    complete: ({ draw, sample }) => "1".repeat(1 + (draw % 4 === 0 ? 0 : sample)),
  }),
];

type Trained = Extract<Batch, { kind: "trajectories" }>;

/** The batch of each round, and the rounds' ledgers. */
async function ended(surplus: Surplus) {
  const { store, artifacts, dir, model } = await stores();
  const config = onlineConfig(model, {
    algorithm: dapo(surplus),
    rounds: 3,
    trainer: { optimizer: { lr: 1 } },
  });
  const { outcome, trainer } = await execute(online, config, {
    store,
    artifacts,
    dir,
    samplers: samplers(),
  });
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  const scores = trainer.calls.filter(({ op }) => op === "score").map(({ key }) => key);
  return { batches: await batchesOf(store, artifacts), rounds: roundsOf(store), artifacts, scores };
}

async function batchesOf(store: MemoryStore, artifacts: ArtifactStore): Promise<Trained[]> {
  const rows = store.rows("run").filter(({ kind, key }) =>
    kind === "result" && key.endsWith("/assign_credit")
  );
  return await Promise.all(rows.map(async ({ value }) => {
    const { output } = JSON.parse(value) as {
      output: { batch: Parameters<ArtifactStore["getJson"]>[0] };
    };
    return Batch.parse(await artifacts.getJson(output.batch)) as Trained;
  }));
}

function roundsOf(store: MemoryStore) {
  return store.rows("run").filter(({ kind }) => kind === "round").map(({ value }) => {
    const { carried, total } = JSON.parse(value) as RoundRecord;
    return {
      draws: carried.draws as { next: number; pending: number; groups: unknown },
      ledger: ledgerOf(total),
    };
  });
}

/** A column of a batch over whole trajectories. [N][T] */
async function column(
  artifacts: ArtifactStore,
  { columns }: Trained,
  name: string,
): Promise<number[][]> {
  const found = columns[name]!;
  ok(found.kind === "token");
  return decodeColumn(await artifacts.get(found.artifact)).map((row) => [...row]);
}

async function trajectories(artifacts: ArtifactStore, { groups }: Trained) {
  const slabs = await Promise.all(
    groups.map(async ({ slab }) => decodeSlab(await artifacts.get(slab))),
  );
  return slabs.flatMap((slab, g) => {
    const { draw, index, samples } = groups[g]!;
    const trajectories = slab.groups[index]!.trajectories;
    return samples.map((sample) => ({ group: draw, ...trajectories[sample]! }));
  });
}

/** What DAPO's loss makes of a batch, by the policy whose log-probabilities `logp` are. */
async function lossOf(artifacts: ArtifactStore, batch: Trained, logp: number[][]) {
  const old_logp = await column(artifacts, batch, "old_logp");
  const advantage = batch.columns.advantage!;
  ok(advantage.kind === "sequence");
  const { values } = advantage;
  const sequences = (await trajectories(artifacts, batch)).map((
    { group, action_mask },
    i,
  ): EvaluatedSequence => ({
    group,
    mask: [...action_mask],
    inputs: { logp: logp[i]!, old_logp: old_logp[i]!, advantage: values[i]! },
  }));
  const ratios = sequences.flatMap(({ mask }, i) =>
    mask.flatMap((bit, t) => bit ? [Math.exp(logp[i]![t]! - old_logp[i]![t]!)] : [])
  );
  const { loss } = expressionsOf(AlgorithmChoice.parse(dapo("reuse")));
  return { ratios, clipped: evaluate(loss, { sequences }).metrics["policy/clip_fraction"]! };
}

Deno.test("surplus: reuse takes the sampler's log-probabilities as old_logp", async () => {
  const [before, reuse] = [await ended("rescore"), await ended("reuse")];
  const [stale, same] = [reuse.batches[1]!, before.batches[1]!];
  deepStrictEqual([stale.groups, stale.staleness], [same.groups, [1, 1, 0, 0]]);
  // Until here both runs have trained on the same batch: what the older kind scored anew is what
  // the policy says now.
  const logp = await column(before.artifacts, same, "old_logp");
  const old_logp = await column(reuse.artifacts, stale, "old_logp");
  for (
    const [i, { behaviour_logp, action_mask }] of (await trajectories(reuse.artifacts, stale))
      .entries()
  ) {
    const expected = stale.staleness[i]! > 0 ? [...behaviour_logp] : logp[i]!;
    const trained = (row: number[]) => row.filter((_, t) => action_mask[t]);
    deepStrictEqual(trained(old_logp[i]!), trained(expected), `sequence ${i}`);
  }
  const [seen, unseen] = [
    await lossOf(reuse.artifacts, stale, logp),
    await lossOf(before.artifacts, same, logp),
  ];
  ok(
    unseen.ratios.every((ratio) => ratio === 1) && unseen.clipped === 0,
    "the older kind sees no staleness",
  );
  const outside = seen.ratios.filter((ratio) => ratio < 0.8 || ratio > 1.28).length /
    seen.ratios.length;
  ok(
    outside > 0 && outside < 1,
    `${outside} of the tokens are outside: the test proves too little`,
  );
  strictEqual(seen.clipped, outside);
});

Deno.test("surplus: every choice accounts for every draw", async () => {
  const [discard, reuse] = [await ended("discard"), await ended("reuse")];
  const none = { stale: 0, failed: {} };
  const discarded = (n: number) => {
    const filtered = { surplus: n, zero_advantage: n };
    const ledger = { read: 4 * n, trained: 2 * n, filtered, ...none, pending: 0 };
    return { next: 4 * n, pending: 0, groups: null, ledger };
  };
  deepStrictEqual(
    discard.rounds.map(({ draws, ledger }) => ({ ...draws, ledger })),
    [1, 2, 3].map(discarded),
  );
  deepStrictEqual(discard.batches.map(({ groups }) => groups.map(({ draw }) => draw)), [[1, 2], [
    5,
    6,
  ], [9, 10]]);
  deepStrictEqual(
    discard.batches.map(({ staleness, columns }) => [staleness, Object.keys(columns)]),
    [
      [[], ["advantage"]],
      [[], ["advantage"]],
      [[], ["advantage"]],
    ],
  );
  deepStrictEqual(discard.scores, [], "an on-policy batch of one step needs no scoring");
  deepStrictEqual(
    reuse.rounds.map(({ draws: { next, pending }, ledger }) => ({ next, pending, ledger })),
    [
      {
        next: 4,
        pending: 1,
        ledger: { read: 4, trained: 2, filtered: { zero_advantage: 1 }, ...none, pending: 1 },
      },
      {
        next: 6,
        pending: 0,
        ledger: { read: 6, trained: 4, filtered: { zero_advantage: 2 }, ...none, pending: 0 },
      },
      {
        next: 8,
        pending: 0,
        ledger: { read: 8, trained: 6, filtered: { zero_advantage: 2 }, ...none, pending: 0 },
      },
    ],
  );
});

Deno.test("surplus: a fork that discards counts its parent's reused groups", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { algorithm: dapo("reuse") });
  strictEqual((await executeFake(home, "a", { samplers: samplers() })).status, "done");
  const parent = (await home.store.head("a"))!;
  await forkRun(home, parent, { round: 1, id: "b", overrides: ["algorithm.surplus=discard"] });
  const child = await executeFake(home, "b", { samplers: samplers() });
  strictEqual(child.status, "done");
  const { read, trained, filtered, pending } = child.ledger;
  // Round 1 handed one group on, which round 2 drops; rounds 2 to 6 draw four and drop one of them
  // each.
  deepStrictEqual({ read, trained, filtered, pending }, {
    read: 24,
    trained: 12,
    pending: 0,
    filtered: { surplus: 6, zero_advantage: 6 },
  });
  // It ends where it discards, as nothing is handed on.
  await forkRun(home, (await home.store.head("b"))!, {
    round: 3,
    id: "c",
    overrides: ["rounds=3"],
  });
  const ends = await forkRun(home, parent, { round: 1, id: "d", overrides: ["rounds=1"] }).then(
    () => "",
    String,
  );
  match(ends, /rounds: is 1, but round 1 may pass on groups/);
  notStrictEqual(child.version, (await executeFake(home, "a", { samplers: samplers() })).version);
});

Deno.test("a filter decides which groups a round uses, in place of their rewards", async () => {
  const ledgerWith = async (above: number) => {
    const { store, artifacts, dir, model } = await stores();
    const config = onlineConfig(model, {
      algorithm: dapo("discard"),
      rounds: 1,
      reward_shaping: { filter: { by: "length", above } },
    });
    const { outcome } = await execute(online, config, {
      store,
      artifacts,
      dir,
      samplers: samplers(),
    });
    strictEqual(outcome.status, "done", JSON.stringify(outcome));
    return roundsOf(store)[0]!.ledger;
  };
  const none = await ledgerWith(2);
  deepStrictEqual([none.trained, none.filtered], [0, { filter_score: 6 }]);
  const all = await ledgerWith(0);
  // The first group of four has equal rewards, which would be no signal.
  deepStrictEqual([all.read, all.filtered], [2, {}]);
});
