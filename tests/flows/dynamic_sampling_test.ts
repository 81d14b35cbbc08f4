import { deepStrictEqual, match, notStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { AlgorithmChoice, hasSignal } from "../../algs/mod.ts";
import { Batch } from "../../data/mod.ts";
import type { ArtifactStore, RoundRecord } from "../../engine/mod.ts";
import { type Complete, Crashed, FakeSampler, type MemoryStore } from "../../testing/mod.ts";
import { ledgerOf } from "../../flows/mod.ts";
import { online } from "../../flows/online.ts";
import { execute, onlineConfig, rowsOf, stores } from "./fixtures.ts";

const dapoConfig = (model: string, overrides: Record<string, unknown> = {}) =>
  onlineConfig(model, {
    algorithm: { name: "dapo", refill_batches_max: 3, surplus: "rescore" },
    ...overrides,
  });

/** Only these draws get two lengths, so only their groups have something to teach. */
const usableDraws = (...draws: number[]): Complete => ({ draw, sample }) =>
  draws.includes(draw) ? "1".repeat(1 + sample) : "11";

/** What each round was trained on: draws, staleness, columns. None: the policy was carried over. */
async function trainedRounds(store: MemoryStore, artifacts: ArtifactStore) {
  const rows = store.rows("run").filter(({ kind, key }) =>
    kind === "result" && key.endsWith("/assign_credit")
  );
  return await Promise.all(rows.map(async ({ value }) => {
    const { batch } =
      (JSON.parse(value) as { output: { batch: Parameters<ArtifactStore["getJson"]>[0] | null } })
        .output;
    if (batch === null) return null;
    const { groups, staleness, columns } = Batch.parse(await artifacts.getJson(batch)) as Extract<
      Batch,
      { kind: "trajectories" }
    >;
    return {
      draws: groups.map(({ draw }) => draw),
      staleness,
      columns: Object.keys(columns).sort(),
    };
  }));
}

function closed(store: MemoryStore) {
  return store.rows("run").filter(({ kind }) => kind === "round").map(({ value }) => {
    const { carried, total } = JSON.parse(value) as RoundRecord;
    const { next, pending } = carried.draws as { next: number; pending: number };
    return { next, pending, ledger: ledgerOf(total) };
  });
}

Deno.test("dynamic sampling takes usable groups in draw order; what is past the cut leads the next round, at the end it is surplus", async () => {
  const { store, artifacts, dir, model } = await stores();
  const samplers = [new FakeSampler({ complete: usableDraws(1, 2, 3, 6, 7, 8, 9) })];
  const { outcome, trainer } = await execute(online, dapoConfig(model), {
    store,
    artifacts,
    dir,
    samplers,
  });
  strictEqual(outcome.status, "done");
  // Batches of two draws: 0 to 3, then 4 to 7, then 8 and 9.
  deepStrictEqual(await trainedRounds(store, artifacts), [
    { draws: [1, 2], staleness: [], columns: ["advantage"] },
    { draws: [3, 6], staleness: [1, 1, 0, 0], columns: ["advantage", "old_logp"] },
    { draws: [7, 8], staleness: [1, 1, 0, 0], columns: ["advantage", "old_logp"] },
  ]);
  const none = { stale: 0, failed: {} };
  deepStrictEqual(closed(store), [
    {
      next: 4,
      pending: 1,
      ledger: { read: 4, trained: 2, filtered: { zero_advantage: 1 }, ...none, pending: 1 },
    },
    {
      next: 8,
      pending: 1,
      ledger: { read: 8, trained: 4, filtered: { zero_advantage: 3 }, ...none, pending: 1 },
    },
    {
      next: 10,
      pending: 0,
      ledger: {
        read: 10,
        trained: 6,
        filtered: { surplus: 1, zero_advantage: 3 },
        ...none,
        pending: 0,
      },
    },
  ]);
  const scored = trainer.calls.filter(({ op }) => op === "score").map((
    { key, args },
  ) => [key, (args as { columns: string[] }).columns]);
  deepStrictEqual(scored, [["round/2/score_tokens", ["old_logp"]], ["round/3/score_tokens", [
    "old_logp",
  ]]]);
});

Deno.test("dynamic sampling with mask_truncated replaces groups that are cut whole, and masks what is cut of the others", async () => {
  const { store, artifacts, dir, model } = await stores();
  // Draw 1 is cut whole; of the others the longer sample is.
  const complete: Complete = ({ draw, sample }) => "1".repeat((draw === 1 ? 5 : 4) + sample);
  const samplers = [
    new FakeSampler({ complete, stop: (text) => text.length > 4 ? "length" : "stop" }),
  ];
  const algorithm = { name: "dapo", refill_batches_max: 3, mask_truncated: true };
  const config = onlineConfig(model, { rounds: 1, algorithm });
  strictEqual(
    (await execute(online, config, { store, artifacts, dir, samplers })).outcome.status,
    "done",
  );
  const filtered = { surplus: 1, truncated: 1 };
  deepStrictEqual(closed(store)[0]!.ledger, {
    read: 4,
    trained: 2,
    filtered,
    stale: 0,
    failed: {},
    pending: 0,
  });
  const { value } = store.rows("run").find(({ kind, key }) =>
    kind === "result" && key === "round/1/assign_credit"
  )!;
  const batch = Batch.parse(await artifacts.getJson(JSON.parse(value).output.batch));
  ok(batch.kind === "trajectories");
  deepStrictEqual([batch.groups.map(({ draw }) => draw), batch.masked], [[0, 2], [1, 3]]);
});

Deno.test("dynamic sampling trains on what it has after batches_max batches, and says so; on nothing, the version is carried over", async () => {
  const { store, artifacts, dir, model } = await stores();
  const samplers = [new FakeSampler({ complete: usableDraws(3, 12, 13) })];
  const logs: string[] = [];
  const metrics: Record<string, number>[] = [];
  const { outcome } = await execute(online, dapoConfig(model), {
    store,
    artifacts,
    dir,
    samplers,
    engine: {
      onEvent: (event) => {
        if (event.type === "log") logs.push(event.text);
        if (event.type === "metrics" && "rollouts/usable_frac" in event.metrics) {
          metrics.push(event.metrics);
        }
      },
    },
  });
  strictEqual(outcome.status, "done");
  deepStrictEqual((await trainedRounds(store, artifacts)).map((round) => round?.draws ?? null), [
    [3],
    null,
    [12, 13],
  ]);
  const versions = store.rows("run").filter(({ kind }) => kind === "round")
    .map(({ value }) =>
      (JSON.parse(value) as { carried: { policy: { version: string } } }).carried.policy.version
    );
  strictEqual(versions[1], versions[0]);
  notStrictEqual(versions[2], versions[1]);
  deepStrictEqual(closed(store).map(({ next, pending }) => [next, pending]), [[6, 0], [12, 0], [
    14,
    0,
  ]]);
  deepStrictEqual(logs.length, 2);
  match(logs[0]!, /round 1 has 1 of 2 groups with a signal after 6 draws.*trains on these/);
  match(logs[1]!, /round 2 has 0 of 2 groups.*the policy is carried over/);
  const draws = metrics.map((
    round,
  ) => [round["rollouts/batches_drawn"], round["rollouts/usable_frac"]!.toFixed(3)]);
  deepStrictEqual(draws, [[3, "0.167"], [3, "0.000"], [1, "1.000"]]);
  // All that was drawn counts, not only what is trained: 5 groups of reward 3/4, and one of 7/8 and
  // 3/4.
  ok(Math.abs(metrics[0]!["reward/mean"]! - (11 * 0.75 + 0.875) / 12) < 1e-12);
  strictEqual(metrics[1]!["reward/zero_std_frac"], 1);
});

Deno.test("hasSignal() is a nonzero advantage, or different rewards where credit needs what is scored later", () => {
  const group = (reward: number[], length = [3, 5]) =>
    ({ reward, length, group: [0, 0], stop: ["stop", "stop"] }) satisfies Parameters<
      typeof hasSignal
    >[1];
  const choice = (settings: Record<string, unknown>) =>
    AlgorithmChoice.parse({ name: "dapo", ...settings });
  deepStrictEqual([[1, 0], [1, 1]].map((reward) => hasSignal(choice({}), group(reward))), [
    true,
    false,
  ]);
  const overlong = choice({ overlong_buffer: 2, overlong_length_max: 5 });
  deepStrictEqual([[3, 5], [3, 3]].map((length) => hasSignal(overlong, group([1, 1], length))), [
    true,
    false,
  ]);
  const kl = choice({ kl_coef: 0.1, kl_in: "reward", kl_estimator: "k1", kl_scaled: true });
  deepStrictEqual([[1, 0], [1, 1]].map((reward) => hasSignal(kl, group(reward))), [true, false]);
});

Deno.test("dynamic sampling counts a failed draw once, and fails the run above failed_fraction_max of all that were drawn", async () => {
  for (const [failed_fraction_max, status] of [[0.25, "done"], [0.2, "failed"]] as const) {
    const { store, artifacts, dir, model } = await stores();
    const complete = usableDraws(0, 1, 2, 3);
    const train = rowsOf(4);
    const reward = [{ name: "length", unit: "characters", max: 8 }, { name: "gsm8k" }];
    const config = dapoConfig(model, {
      rounds: 1,
      reward,
      rollouts: { slab_groups: 1, failed_fraction_max },
    });
    // One row of four has no number to compare with: its grader throws.
    const rows = {
      train: {
        ...train,
        rows: async (places: readonly number[]) =>
          (await train.rows(places)).map((row, i) =>
            places[i] === 2 ? { ...row, answer: "?" } : row
          ),
      },
    };
    const { outcome } = await execute(online, config, {
      store,
      artifacts,
      dir,
      rows,
      samplers: [new FakeSampler({ complete })],
    });
    strictEqual(outcome.status, status, JSON.stringify(outcome));
    if (outcome.status === "failed") {
      match(outcome.error.message, /1 of 4 groups failed.*failed_fraction_max/);
      continue;
    }
    const { read, trained, filtered, failed, pending } = closed(store).at(-1)!.ledger;
    deepStrictEqual({ read, trained, filtered, failed, pending }, {
      read: 4,
      trained: 2,
      filtered: { surplus: 1 },
      failed: { reward_error: 1 },
      pending: 0,
    });
  }
});

/** A run with those crashes; what it came to. */
async function ended(crashes: number[]) {
  const { store: first, artifacts, dir, model } = await stores();
  let store = first;
  const again: string[] = [];
  for (const crash of [...crashes, undefined]) {
    store = store.restarted({ crash_after_appends: crash });
    const recorded = new Set(
      store.rows("run").filter(({ kind }) => kind === "result").map(({ key }) => key),
    );
    // A third of the groups have equal lengths, and which do depends on the weights.
    const sampler = new FakeSampler({
      complete: ({ draw, sample, weights }) => {
        const chance = Math.floor(weights * 1e6) + draw * 7;
        return "1".repeat(1 + (chance % 2) + (chance % 3 === 0 ? 0 : sample));
      },
    });
    sampler.hook = ({ op, key }, moment) => {
      if (op === "generate" && moment === "begin" && recorded.has(key)) again.push(key);
    };
    try {
      const engine = { backoff: { first_ms: 0, max_ms: 0 } };
      const { outcome } = await execute(
        online,
        dapoConfig(model, { rounds: 4, prompts_per_round: 3 }),
        {
          store,
          artifacts,
          dir,
          samplers: [sampler],
          engine,
        },
      );
      strictEqual(outcome.status, "done", JSON.stringify(outcome));
    } catch (error) {
      if (!(error instanceof Crashed)) throw error;
    }
  }
  const rounds = await trainedRounds(store, artifacts);
  const { policy } =
    JSON.parse(store.rows("run").findLast(({ kind }) => kind === "round")!.value).carried;
  await Deno.remove(dir, { recursive: true });
  // Slabs of one group.
  const generated = store.rows("run").filter(({ kind }) => kind === "note/generation").length;
  return {
    same: { rounds, closed: closed(store), version: policy.version },
    appends: store.appends,
    generated,
    again,
  };
}

Deno.test("dynamic sampling: killed after any append and resumed, the same groups are trained and the ledger is the same", async () => {
  const calm = await ended([]);
  ok(
    calm.same.closed.some(({ pending }) => pending > 0),
    "no round hands anything on: the test proves too little",
  );
  ok(
    calm.same.closed.some(({ next }, i) => next - (calm.same.closed[i - 1]?.next ?? 0) > 3),
    "no round was refilled",
  );
  for (let crash = 1; crash < calm.appends; crash++) {
    const killed = await ended([crash]);
    deepStrictEqual([crash, killed.same], [crash, calm.same]);
    deepStrictEqual(killed.again, []);
    ok(
      killed.generated - calm.generated <= 1,
      `append ${crash} made ${killed.generated - calm.generated} slabs again`,
    );
  }
  const crashes = fc.array(fc.integer({ min: 1, max: calm.appends }), {
    minLength: 2,
    maxLength: 4,
  });
  await fc.assert(
    fc.asyncProperty(crashes, async (at) => deepStrictEqual((await ended(at)).same, calm.same)),
    {
      numRuns: 15,
    },
  );
});
