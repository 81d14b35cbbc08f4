import { deepStrictEqual, notStrictEqual, ok, strictEqual } from "node:assert/strict";
import type { Policy } from "../../../data/mod.ts";
import type { RoundRecord } from "../../../engine/mod.ts";
import { Crashed, type FakeTrainer, writeFakeModel } from "../../../testing/mod.ts";
import { forkRun, runView } from "../../../runs/mod.ts";
import { online } from "../../../flows/online.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { execute, onlineConfig, stores } from "../fixtures.ts";

const KL = { algorithm: { name: "grpo", kl_coef: 0.1 } };

/** Directories of the reference, as scoring was given them, by round. */
function paths(trainer: FakeTrainer): Record<string, string> {
  const calls = trainer.calls.filter(({ op }) => op === "score");
  return Object.fromEntries(
    calls.map((
      { key, args },
    ) => [key.split("/")[1]!, (args as { reference_path: string }).reference_path]),
  );
}

function carriedReferences(rows: readonly { kind: string; value: string }[]): Policy[] {
  return rows.filter(({ kind }) => kind === "round").map(({ value }) =>
    (JSON.parse(value) as RoundRecord).carried.reference as Policy
  );
}

async function names(dir: string): Promise<string[]> {
  return (await Array.fromAsync(Deno.readDir(dir), ({ name }) => name)).toSorted();
}

Deno.test("the reference is the run's start by default", async () => {
  const home = await stores();
  const { trainer } = await execute(online, onlineConfig(home.model, KL), home);
  deepStrictEqual(paths(trainer), { 1: home.model, 2: home.model, 3: home.model });
  strictEqual(
    carriedReferences(home.store.rows("run"))[0],
    undefined,
    "what does not change is not carried",
  );
});

Deno.test("a separate reference is recorded, and is no version of the policy", async () => {
  const home = await stores();
  await writeFakeModel(`${home.dir}/other`, 0.25);
  const config = onlineConfig(home.model, {
    ...KL,
    reference: { path: `${home.dir}/other`, offload: true },
  });
  const { trainer } = await execute(online, config, home);
  strictEqual(paths(trainer)[2], `${home.dir}/other`);
  const [score] = trainer.calls.filter(({ op }) => op === "score");
  strictEqual((score!.args as { reference_offload?: boolean }).reference_offload, true);
  const view = await runView(home.store, (await home.store.head("run"))!, {
    workers: [],
    metrics: {},
  });
  strictEqual(view.policy!.number, 3);
  const recorded = home.store.rows("run").find(({ kind, key }) =>
    kind === "result" && key === "prepare_reference"
  );
  ok(recorded);
});

Deno.test("a reference that nothing reads is not scored", async () => {
  const home = await stores();
  const config = onlineConfig(home.model, {
    reference: { path: `${home.dir}/missing`, refresh_rounds: 1 },
  });
  const { outcome, trainer } = await execute(online, config, home);
  strictEqual(outcome.status, "done");
  deepStrictEqual(paths(trainer), {});
});

Deno.test("a refreshed reference is that round's policy, and only it stays", async () => {
  const home = await stores();
  const config = onlineConfig(home.model, { ...KL, rounds: 6, reference: { refresh_rounds: 2 } });
  const { trainer } = await execute(online, config, home);
  const rounds = home.store.rows("run").filter(({ kind }) => kind === "round")
    .map(({ value }) => (JSON.parse(value) as RoundRecord).carried as Record<string, Policy>);
  const refreshed = [1, 1, 3, 3, 5].map((i) => rounds[i]!.policy!);
  deepStrictEqual(rounds.map(({ reference }) => reference!), [rounds[0]!.reference!, ...refreshed]);
  const numbers = refreshed.map(({ number }) => number);
  ok(0 < numbers[0]! && numbers[0]! < numbers[2]! && numbers[2]! < numbers[4]!);
  const used = paths(trainer);
  deepStrictEqual([used[1], used[2]], [home.model, home.model]);
  ok(used[3]!.endsWith(rounds[1]!.policy!.version.slice(0, 16)));
  deepStrictEqual([used[3] === used[4], used[5] === used[6], used[3] === used[5]], [
    true,
    true,
    false,
  ]);
  deepStrictEqual(await names(`${home.dir}/run/references`), [
    rounds[5]!.policy!.version.slice(0, 16),
  ]);
  const dropped = home.store.rows("run").filter(({ kind }) => kind === "note/reference_dropped");
  strictEqual(dropped.length, 2);
});

Deno.test("a refresh touches nothing beside the model of the start", async () => {
  const home = await stores();
  await writeFakeModel(`${home.dir}/other`, 0.25);
  const before = await names(home.dir);
  const reference = { path: `${home.dir}/other`, refresh_rounds: 1 };
  // Nobody is ever right, so nothing is trained and the policy stays what it was.
  const config = onlineConfig(home.model, { ...KL, reference, reward: [{ name: "exact_match" }] });
  const { outcome, trainer } = await execute(online, config, home);
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  deepStrictEqual(carriedReferences(home.store.rows("run")).map(({ number }) => number), [0, 0, 0]);
  strictEqual(trainer.calls.some(({ op }) => op === "train"), false);
  const after = await names(home.dir);
  deepStrictEqual(before.filter((name) => !after.includes(name)), []);
  strictEqual(home.store.rows("run").some(({ kind }) => kind === "note/reference_dropped"), false);
});

Deno.test("a lost reference is made again after a kill at any append", async () => {
  const config = (model: string) =>
    onlineConfig(model, { ...KL, rounds: 3, reference: { refresh_rounds: 1 } });
  const ended = async (crash?: number) => {
    const { store: first, artifacts, dir, model } = await stores();
    let store = first.restarted({ crash_after_appends: crash });
    try {
      await execute(online, config(model), { store, artifacts, dir });
    } catch (error) {
      if (!(error instanceof Crashed)) throw error;
      // As on another machine.
      await Deno.remove(`${dir}/run/references`, { recursive: true }).catch(() => {});
      store = store.restarted();
      const { outcome } = await execute(online, config(model), { store, artifacts, dir });
      strictEqual(outcome.status, "done", JSON.stringify(outcome));
    }
    const { policy, ledger } = await runView(store, (await store.head("run"))!, {
      workers: [],
      metrics: {},
    });
    await Deno.remove(dir, { recursive: true });
    return { policy, ledger, appends: store.appends };
  };
  const { appends, ...calm } = await ended();
  for (let n = 1; n <= appends; n++) {
    const { appends: _, ...same } = await ended(n);
    deepStrictEqual(same, calm, `killed after append ${n}`);
  }
});

Deno.test("a fork makes its own files of its round's reference", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { ...KL, reference: { refresh_rounds: 2 } });
  const whole = await executeFake(home, "a");
  for (const round of [2, 3, 4]) {
    const id = `b${round}`;
    await forkRun(home, (await home.store.head("a"))!, { round, id });
    const ended = await executeFake(home, id);
    deepStrictEqual([ended.status, ended.version, ended.digest], [
      "done",
      whole.version,
      whole.digest,
    ]);
    notStrictEqual(paths(ended.trainer)[round + 1], paths(whole.trainer)[round + 1]);
  }
});
