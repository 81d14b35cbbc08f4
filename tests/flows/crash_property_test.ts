import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { WorkerLostError } from "../../engine/mod.ts";
import { Crashed, type MemoryStore } from "../../engine/testing.ts";
import { runView } from "../../flows/mod.ts";
import { online } from "../../flows/online.ts";
import { FakeSampler, FakeTrainer } from "../../flows/testing.ts";
import type { FakeCall, FakeHook } from "../../workers/mod.ts";
import { execute, onlineConfig, stores } from "./fixtures.ts";

/** Where engines die (appends of each start) and where worker groups are lost (operations of the whole history). */
type Trouble = { crashes: number[]; losses: { trainer: number[]; sampler: number[] } };
const SLAB_GROUPS_MAX = 2;
type Ended = {
  version: string;
  digest: string;
  ledger: unknown;
  evaluations: unknown;
  generated: number;
  started_again: string[];
  recoveries: { batches_redone: number }[];
  appends: number;
  operations: number;
};

/** Loses the group at its n-th operation, at the begin of an odd one and at the end of an even one. */
function losing(at: number[], state: { count: number }, forget: () => void): FakeHook {
  return (_: FakeCall, moment) => {
    if (moment === "begin") state.count++;
    if (!at.includes(state.count) || (moment === "begin") !== (state.count % 2 === 1)) return;
    forget();
    throw new WorkerLostError("Cannot go on as the worker was killed on purpose");
  };
}

async function run({ crashes, losses }: Trouble): Promise<Ended> {
  const { store: first, artifacts, dir, model } = await stores();
  const config = onlineConfig(model, {
    data: { train: [{ path: "t" }], eval: [{ path: "e" }] },
    evaluate: { problems: SLAB_GROUPS_MAX },
    rounds: 6,
    checkpoints: { every_rounds: 3, keep_last: 1 },
  });
  const counts = { trainer: { count: 0 }, sampler: { count: 0 } };
  const started_again: string[] = [];
  let store: MemoryStore = first;
  try {
    for (const crash of [...crashes, undefined]) {
      store = store.restarted({ crash_after_appends: crash });
      const trainer = new FakeTrainer({ artifacts });
      trainer.hook = losing(losses.trainer, counts.trainer, () => trainer.forget());
      const sampler = new FakeSampler();
      const lose = losing(losses.sampler, counts.sampler, () => sampler.forget());
      sampler.hook = (call, moment) => {
        if (moment === "begin" && call.op === "generate" && recorded(store, call.key)) started_again.push(call.key);
        return lose(call, moment);
      };
      const engine = { backoff: { first_ms: 0, max_ms: 0 } };
      try {
        const { outcome } = await execute(online, config, {
          store,
          artifacts,
          dir,
          trainer,
          samplers: [sampler],
          engine,
        });
        strictEqual(outcome.status, "done", JSON.stringify(outcome));
        break;
      } catch (error) {
        if (!(error instanceof Crashed)) throw error;
      }
    }
    const head = (await store.head("run"))!;
    const view = await runView(store, head, { workers: [], metrics: {} });
    const { ledger, evaluations, recoveries } = view;
    const operations = counts.trainer.count;
    const { version, digest } = view.policy!;
    const generated = view.generated.groups;
    return {
      ...{ version, digest: digest!, ledger, evaluations, generated, started_again, recoveries },
      ...{ appends: store.appends, operations },
    };
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

function recorded(store: MemoryStore, key: string): boolean {
  return store.rows("run").some((row) => row.kind === "result" && row.key === key);
}

const calm = await run({ crashes: [], losses: { trainer: [], sampler: [] } });

function same(ended: Ended): void {
  const { version, digest, ledger, evaluations, started_again } = ended;
  deepStrictEqual([version, digest, ledger, evaluations], [calm.version, calm.digest, calm.ledger, calm.evaluations]);
  deepStrictEqual(started_again, []);
}

Deno.test("online: the undisturbed run trains every round and reads what it draws", () => {
  deepStrictEqual(calm.ledger, { read: 12, trained: 12, filtered: {}, stale: 0, failed: {}, pending: 0 });
  deepStrictEqual(calm.recoveries, []);
});

Deno.test("online: killed after any append and resumed, it ends with the same version, weights and ledger", async () => {
  let redid = 0;
  for (let n = 1; n <= calm.appends; n++) {
    const ended = await run({ crashes: [n], losses: { trainer: [], sampler: [] } });
    same(ended);
    if (ended.recoveries.some(({ batches_redone }) => batches_redone > 0)) redid++;
    // One sampler makes one slab at a time, and the largest is that of the evaluation.
    ok(
      ended.generated - calm.generated <= SLAB_GROUPS_MAX,
      `append ${n} made ${ended.generated - calm.generated} groups again`,
    );
  }
  ok(redid >= calm.appends / 5, `only ${redid} of ${calm.appends} kills redid a batch: the test proves too little`);
});

Deno.test("online: any mix of killed engines and lost workers ends with the same version, weights and ledger", async () => {
  const crashes = fc.array(fc.integer({ min: 1, max: calm.appends }), { maxLength: 3 });
  // One of each kind: a stage that loses its workers three times has spent its budget, as it should.
  const lost = (max: number) => fc.uniqueArray(fc.integer({ min: 1, max }), { maxLength: 1 });
  const losses = fc.record({ trainer: lost(calm.operations), sampler: lost(10) });
  await fc.assert(
    fc.asyncProperty(fc.record({ crashes, losses }), async (trouble) => same(await run(trouble))),
    { numRuns: 30 },
  );
});
