/** Forks of runs that are evaluated between rounds, and of those that `stop` has ended. */
import { strictEqual } from "node:assert/strict";
import { forkRun, runView } from "../../../runs/mod.ts";
import { rowsOf } from "../../flows/fixtures.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

const ROWS = { train: rowsOf(16), "eval/math": rowsOf(4, "math") };

/** A run that is evaluated every 2 rounds, and forks of it. */
async function evaluated(overrides: Record<string, unknown> = {}) {
  const home = await freshFakeHome();
  await Deno.writeTextFile(`${home.dir}/math.jsonl`, "");
  const sets = [{ name: "math", data: [{ path: `${home.dir}/math.jsonl` }] }];
  await createFakeRun(home, "a", { evaluate: { every_rounds: 2, sets }, ...overrides });
  const ended = async (id: string) => {
    const { status, version } = await executeFake(home, id, { rows: ROWS });
    const { round, evaluations } = await runView(home.store, (await home.store.head(id))!, {
      workers: [],
      metrics: {},
    });
    return { status, version, round, evaluations: evaluations.map(({ name }) => name) };
  };
  const whole = await ended("a");
  strictEqual(whole.status, "done");
  const fork = async (round: number, ...overrides: string[]) => {
    const id = `at_${round}_${Math.abs(hash(overrides.join()))}`;
    await forkRun(home, (await home.store.head("a"))!, { round, id, overrides });
    return await ended(id);
  };
  return { whole, fork };
}

function hash(text: string): number {
  return [...text].reduce((sum, one) => (31 * sum + one.codePointAt(0)!) | 0, 7);
}

Deno.test("a fork of the round that ended training continues only if stop differs", async () => {
  // No value is better by 2: the second evaluation ends the run.
  const stop = { metric: "eval/math/mean_reward", patience_rounds: 2, min_delta: 2 };
  const { whole, fork } = await evaluated({ stop });
  strictEqual(whole.round, 4);
  const rounds = async (...overrides: string[]) => (await fork(4, ...overrides)).round;
  strictEqual((await fork(4)).version, whole.version);
  strictEqual(await rounds("trainer.optimizer.lr=0.02"), 4);
  strictEqual(await rounds("stop=null"), 6);
  strictEqual(await rounds("stop.patience_rounds=3"), 6);
});
