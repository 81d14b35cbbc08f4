/** What else works on a run whose rounds hand groups on: plan, forks, gc, verify, rollouts. */
import {
  deepStrictEqual,
  match,
  notStrictEqual,
  ok,
  rejects,
  strictEqual,
} from "node:assert/strict";
import { batchArithmetic } from "../../cli/verbs/plan.ts";
import { loadConfig } from "../../configs/mod.ts";
import type { RoundRecord } from "../../engine/mod.ts";
import {
  collectGarbage,
  forkRun,
  type Home,
  readRollouts,
  verifyVersions,
  whyEntry,
} from "../../runs/mod.ts";
import { FakeSampler, FakeTrainer } from "../../testing/mod.ts";
import { rowsToRedo } from "../../runs/verify.ts";
import { PolicyTrainer } from "../../workers/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../runs/fake_home.ts";

const DAPO = { algorithm: { name: "dapo", surplus: "reuse" } };
const ALL = { younger_than_ms: -60_000, rows: true };

/**
 * Three of four groups have different lengths: rounds 1 and 4 draw two batches and hand one group
 * on.
 */
const samplers = () => [
  new FakeSampler({
    complete: ({ draw, sample }) => "1".repeat(1 + (draw % 4 === 0 ? 0 : sample)),
  }),
];
const run = async (home: Home, id: string) => {
  const { status, version, digest, ledger } = await executeFake(home, id, { samplers: samplers() });
  return { status, version, digest, ledger };
};

/** How many groups each closed round hands on. */
async function handedOn(home: Home, id: string): Promise<number[]> {
  const rows = await home.store.read(id, { kinds: ["round"] });
  return rows.map(({ value }) =>
    ((JSON.parse(value) as RoundRecord).carried.draws as { pending: number }).pending
  );
}

async function done(overrides: Record<string, unknown> = DAPO) {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", overrides);
  return { home, ended: await run(home, "a") };
}

const fork = async (
  home: Home,
  from: string,
  options: { round: number; id: string; overrides?: string[] },
) => await forkRun(home, (await home.store.head(from))!, options);

Deno.test("dapo ends as its parent when it is forked at any round", async () => {
  const { home, ended } = await done();
  strictEqual(ended.status, "done");
  deepStrictEqual(await handedOn(home, "a"), [1, 0, 0, 1, 0, 0]);
  for (let round = 0; round < 6; round++) {
    await fork(home, "a", { round, id: `b${round}` });
    deepStrictEqual([round, await run(home, `b${round}`)], [round, ended]);
  }
});

Deno.test("a fork may change grpo to dapo, and not dapo to grpo", async () => {
  const { home } = await done({});
  await fork(home, "a", {
    round: 2,
    id: "b",
    overrides: ["algorithm={name: dapo, surplus: reuse}"],
  });
  const ended = await run(home, "b");
  strictEqual(ended.status, "done");
  const { read, trained, pending } = ended.ledger;
  // Two rounds of two draws, then four that were filled.
  deepStrictEqual([trained, pending], [12, 0]);
  ok(read > 12);
  const draws = (await readRollouts(home, "b", { round: 3, limit: 100 })).map(({ draw }) => draw);
  strictEqual(Math.min(...draws), 4);
  await rejects(
    fork(home, "b", { round: 3, id: "c", overrides: ["algorithm=grpo"] }),
    (error: Error) => {
      match(error.message, /algorithm: its rounds drew until they were full/);
      return true;
    },
  );
  await rejects(
    fork(home, "b", { round: 3, id: "c", overrides: ["rounds=3"] }),
    /rounds: is 3, but round 3 may pass on groups/,
  );
});

Deno.test("gc keeps groups that were handed on, and a fork trains them", async () => {
  const { home, ended } = await done({ ...DAPO, checkpoints: { every_rounds: 4, keep_last: 2 } });
  await fork(home, "a", { round: 4, id: "b" });
  const { rows } = await collectGarbage(home, ALL);
  ok(rows.count > 0, "nothing was collected: the test proves too little");
  deepStrictEqual(await run(home, "b"), ended);
});

Deno.test("verify redoes batches of groups that an older version sampled", async () => {
  const { home, ended } = await done();
  const trainer = new FakeTrainer({ artifacts: home.artifacts });
  const head = (await home.store.head("a"))!;
  const recorded = (await rowsToRedo(home.store, head)).map((row) => ({
    ...row,
    value: JSON.parse(row.value),
  }));
  const redoing = new PolicyTrainer({
    operator: trainer,
    artifacts: home.artifacts,
    clock: { now: () => 0, monotonic: () => 0 } as never,
    numerics: (tokens) => trainer.numerics(tokens),
    recorded,
    checkpoints_dir: `${home.dir}/verify/checkpoints`,
  });
  const { artifacts } = home;
  const verified = await verifyVersions(home.store, head, {
    artifacts,
    trainer: redoing,
    dir: `${home.dir}/verify`,
  });
  deepStrictEqual([verified.equal, verified.versions.length], [true, 7]);
  strictEqual(verified.versions.at(-1)!.version, ended.version);
});

Deno.test("rollouts shows every group that a round drew, with its version", async () => {
  const { home } = await done();
  const draws = async (round: number) => {
    const samples = await readRollouts(home, "a", { round, limit: 100 });
    return {
      draws: [...new Set(samples.map(({ draw }) => draw))],
      policies: [...new Set(samples.map((s) => s.policy))],
    };
  };
  const [first, second] = [await draws(1), await draws(2)];
  deepStrictEqual([first.draws, second.draws], [[0, 1, 2, 3], [4, 5]]);
  deepStrictEqual([first.policies.length, second.policies.length], [1, 1]);
  notStrictEqual(first.policies[0], second.policies[0]);
  const head = (await home.store.head("a"))!;
  const why = await whyEntry(home.store, head, "round/2/sample_until_full");
  deepStrictEqual([why.stage, why.children], ["sample_until_full@1", 4]);
  const slab = await whyEntry(home.store, head, "round/2/sample_until_full/generate_slab#4-4");
  deepStrictEqual([slab.starts.length, slab.starts[0]!.reason], [1, "called"]);
});

Deno.test("plan bounds the samples of dynamic sampling alone", async () => {
  const lines = async (name: string) =>
    batchArithmetic((await loadConfig(`configs/algorithms/${name}.yaml`)).config);
  const [dapo, grpo] = [await lines("dapo"), await lines("grpo")];
  deepStrictEqual(dapo.slice(0, 2), grpo);
  // 120 rounds of up to 10 batches of 32 prompts, 8 samples each.
  match(
    dapo[2]!,
    /^dapo draws until a round is full: up to 10 batches, so at most 307200 are sampled$/,
  );
});
