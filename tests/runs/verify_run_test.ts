import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import type { WorkersConfig } from "../../workers/mod.ts";
import { Home, verifyRun } from "../../runs/mod.ts";
import { NO_PROGRESS_S } from "../../runs/verify_run.ts";
import type { WorkerGroupsOptions } from "../../runs/session/worker_groups.ts";
import { damagedStore } from "./garbage/damaged_store.ts";
import { createFakeRun, executeFake, fakeRedo, freshFakeHome } from "./fake_home.ts";

/**
 * A run that is done, with such a limit of its own, and what a verify of it asks of its workers.
 */
async function verified(limits: Partial<WorkersConfig>) {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { workers: limits });
  await executeFake(home, "a");
  const opened: WorkerGroupsOptions[] = [];
  const workers = (options: WorkerGroupsOptions) => {
    opened.push(options);
    return fakeRedo(options);
  };
  const { equal } = await verifyRun(home, (await home.store.head("a"))!, { workers });
  return {
    equal,
    options: opened[0]!,
    entries: [...Deno.readDirSync(home.runDir("a"))].map(({ name }) => name),
  };
}

Deno.test("verify allows silence up to its own limit, or a longer one of the run", async () => {
  for (
    const [recorded, expected] of [[1, NO_PROGRESS_S], [120, NO_PROGRESS_S], [
      86_400,
      86_400,
    ]] as const
  ) {
    const { equal, options } = await verified({ no_progress_s: recorded });
    deepStrictEqual([equal, options.blocks.workers.no_progress_s], [true, expected]);
  }
  strictEqual(NO_PROGRESS_S, 3600);
});

Deno.test("verify has none of the run's time limits, because another machine may be slower", async () => {
  const limits = { load_timeout_s: 10, train_timeout_s: 20, score_timeout_s: 30 };
  const { equal, options: { blocks: { workers } } } = await verified(limits);
  const { load_timeout_s, train_timeout_s, score_timeout_s } = workers;
  deepStrictEqual([equal, load_timeout_s, train_timeout_s, score_timeout_s], [
    true,
    null,
    null,
    null,
  ]);
});

Deno.test("verify redoes on a separate trainer and removes its directory", async () => {
  const { options, entries } = await verified({});
  strictEqual(options.blocks.sampler.replicas, 0);
  deepStrictEqual(entries.filter((name) => name.startsWith("verify")), []);
});

Deno.test("verify removes its directory when its workers cannot start", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  await executeFake(home, "a");
  const workers = (options: WorkerGroupsOptions) => ({
    ...fakeRedo(options),
    start: () => {
      throw new Error("no worker on purpose");
    },
  });
  await rejects(
    verifyRun(home, (await home.store.head("a"))!, { workers }),
    /no worker on purpose/,
  );
  deepStrictEqual(
    [...Deno.readDirSync(home.runDir("a"))].filter(({ name }) => name.startsWith("verify")),
    [],
  );
});

Deno.test("verify of a run without a version asks for no worker and no environment", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  const workers = () => {
    throw new Error("nobody is needed");
  };
  await rejects(
    verifyRun(home, (await home.store.head("a"))!, { workers }),
    /Cannot verify run 'a' because it has recorded no policy version yet/,
  );
  const entries = [...Deno.readDirSync(home.runDir("a"))].map(({ name }) => name);
  deepStrictEqual(entries.filter((name) => name.startsWith("verify")), []);
});

async function doneHome(): Promise<Home> {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  await executeFake(home, "a");
  return home;
}

Deno.test("verify names a damaged row before it creates anything", async () => {
  const { dir, store, artifacts } = await doneHome();
  for (const value of ["{", "{}"]) {
    const home = new Home(dir, {
      store: damagedStore(store, { kind: "note/version", value }),
      artifacts,
    });
    await rejects(verifyRun(home, (await store.head("a"))!, { workers: fakeRedo }), {
      code: "lost_record",
      message: /^Cannot read the 'note\/version' row of .* Fix: put the journal back/,
    });
  }
});
