import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { parseRewards } from "../../../configs/mod.ts";
import { type Home, rescoreRun } from "../../../runs/mod.ts";
import { REWARDS } from "../../../rewards/mod.ts";
import { RewardWorkers } from "../../../runs/trials/reward_workers.ts";
import { workerBlocks } from "../../../runs/session/worker_blocks.ts";
import type { Operator } from "../../../workers/mod.ts";
import { ensureTestEnvironments } from "../../environments.ts";
import { scoredItem } from "../../flows/fixtures.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

const DAPO = { name: "dapo", refill_batches_max: 2, surplus: "discard" };

/** A run that is done. */
async function done(overrides: Record<string, unknown> = {}): Promise<Home> {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 3, ...overrides });
  await executeFake(home, "a");
  return home;
}

async function rescored(home: Home, text: string, more: object = {}) {
  const head = (await home.store.head("a"))!;
  return await rescoreRun(home, head, { rewards: parseRewards(text, "/x"), ...more });
}

/** Scores 1 to completions of more than 3 letters, and counts what it is asked. */
function pool(completions: string[]): Operator {
  return {
    call(op, args) {
      const answered = (output: unknown) =>
        Promise.resolve({ outputs: [output], blobs: [], generation: 1 });
      if (op === "identify") return answered({ code: "c", unit: "sample" });
      const { items } = args as { items: { id: string; completion: string }[] };
      completions.push(...items.map(({ completion }) => completion));
      return answered({
        results: items.map(({ id, completion }) =>
          scoredItem({ id, score: completion.length > 3 ? 1 : 0, code: "c" })
        ),
      });
    },
  };
}
const REWARD = "{ name: length, unit: characters, max: 8 }";

for (const [name, overrides] of Object.entries({ grpo: {}, dapo: { algorithm: DAPO } })) {
  Deno.test(`the run's own rewards give every sample of ${name} what it has`, async () => {
    const home = await done(overrides);
    const rows = await home.store.read("a");
    const found = await rescored(home, REWARD);
    ok(found.samples >= 12);
    deepStrictEqual([found.changed, found.failures, found.most_changed], [0, {}, []]);
    deepStrictEqual(found.after, found.before);
    deepStrictEqual(found.parts.length, found.before);
    deepStrictEqual(await home.store.read("a"), rows, "nothing is recorded");
    const entries = [...Deno.readDirSync(home.runDir("a"))].map(({ name }) => name);
    deepStrictEqual(entries.filter((name) => name.startsWith("rescore")), []);
    await home.close();
  });
}

Deno.test("another reward is compared sample by sample, of one round or of all", async () => {
  const home = await done();
  const half = "{ name: length, unit: characters, max: 8, weight: 0.5, label: half }";
  const found = await rescored(home, half);
  strictEqual(found.after.mean, found.before.mean! / 2);
  strictEqual(found.parts.half!.mean, found.before.mean);
  const one = await rescored(home, half, { round: 2 });
  deepStrictEqual([one.samples, new Set(one.most_changed.map(({ round }) => round))], [
    4,
    new Set([2]),
  ]);
  await rejects(rescored(home, half, { round: 9 }), /has no sampled group in any loop\/9\. Fix: /);
  await home.close();
});

const BY_CODE = Object.values(REWARDS).filter(({ kept }) => kept?.by === "code");
for (const { name } of BY_CODE) {
  Deno.test(`a second rescore with ${name} uses what the first one kept`, async () => {
    const home = await done();
    const completions: string[] = [];
    const entry = name === "python" ? "name: my.py:f" : `name: ${name}`;
    const first = await rescored(home, `{ ${entry} }`, { pool: pool(completions) });
    strictEqual(completions.length + first.kept, 12);
    const { length } = completions;
    ok(length > 0);
    const second = await rescored(home, `{ ${entry} }`, { pool: pool(completions) });
    deepStrictEqual([second.kept, completions.length], [12, length]);
    deepStrictEqual({ ...second, kept: 0 }, { ...first, kept: 0 });
    const anew = `{ ${entry}, deterministic: false }`;
    strictEqual((await rescored(home, anew, { pool: pool(completions) })).kept, 0);
    await home.close();
  });
}

Deno.test("programs are scored again by the reward worker itself", async () => {
  const { HOLDFAST_TEST_PYTHON: python } = await ensureTestEnvironments();
  const home = await done();
  const { artifacts } = home;
  const blocks = workerBlocks({ trainer: { python } });
  const pool = new RewardWorkers({ run: "a", dir: `${home.dir}/own`, blocks, artifacts });
  // Completions of the fake sampler have no program, so no sandbox starts.
  const entry = "{ name: code, tests: answer }";
  try {
    const first = await rescored(home, entry, { pool, round: 1 });
    deepStrictEqual([first.failures, first.after.mean, first.kept], [{}, 0, 0]);
    strictEqual((await rescored(home, entry, { pool, round: 1 })).kept, 4);
    const all = entry.replace("tests", "credit: all, tests");
    strictEqual((await rescored(home, all, { pool, round: 1 })).kept, 0, "other settings");
  } finally {
    await pool.stop();
    await home.close();
  }
});

Deno.test("the run's shaping holds for the new rewards too, and a failure is counted", async () => {
  const home = await done({ reward_shaping: { token_cost: 0.25 } });
  strictEqual((await rescored(home, REWARD)).changed, 0);
  const { failures } = await rescored(home, "multiple_choice");
  deepStrictEqual(Object.keys(failures), ["reward_error"]);
  match(failures.reward_error!.detail!, /multiple_choice/);
  await home.close();
});
