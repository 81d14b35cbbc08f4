import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import type { RunHead, Store } from "../../engine/mod.ts";
import { damagedField } from "../../engine/mod.ts";
import type { MemoryStore } from "../../testing/mod.ts";
import { WatchedRuns } from "../../cli/watched_runs.ts";
import type { Home } from "../../runs/mod.ts";
import { createFakeRun } from "../runs/fake_home.ts";
import { recordedRows, ReplayedRun, timedHome } from "./replayed_run.ts";

const ROWS = await recordedRows({ rounds: 4 });

async function started(home: Home, id: string): Promise<ReplayedRun> {
  await createFakeRun(home, id, { rounds: 4 });
  const run = new ReplayedRun(home, id, ROWS);
  await run.take();
  await run.run(1);
  return run;
}

Deno.test("WatchedRuns has each unfinished run, newest first, with its progress, engine and trouble", async () => {
  const { home, clock } = await timedHome();
  const a = await started(home, "a");
  await clock.advance(11_000); // The lease of a's engine is over.
  const b = await started(home, "b");
  await started(home, "done").then(({ epoch }) => home.store.finish("done", epoch, "done"));
  await createFakeRun(home, "new", { rounds: 4 });
  const runs = new WatchedRuns(home, { clock });
  const first = await runs.facts();
  deepStrictEqual(first.map(({ id, status, crashed }) => [id, status, crashed]), [
    ["new", "interrupted", false],
    ["b", "running", false],
    ["a", "interrupted", true],
  ]);
  const { loop, round, rounds, rewards, engine, left_s, trouble } = first[1]!;
  deepStrictEqual({ loop, round, rounds, rewards: rewards.length, engine, left_s, trouble }, {
    loop: "round",
    round: 1,
    rounds: 4,
    rewards: 1,
    engine: { pid: 7, host: "far" },
    left_s: null,
    trouble: null,
  });
  strictEqual(first[2]!.tokens_per_second, null);

  await clock.advance(2000);
  const recovery = { cause: "worker_lost", action: "load_checkpoint", batches_redone: 2 };
  await b.add("recovery", "round/2/train_policy", recovery);
  await b.run(2);
  await a.take();
  const [, second, resumed] = await runs.facts();
  deepStrictEqual([second!.round, second!.rewards.length, second!.left_s], [2, 2, 4]);
  ok(second!.tokens_per_second! > 0);
  strictEqual(second!.trouble, "recovered from worker_lost: load_checkpoint, 2 batches redone");
  deepStrictEqual([resumed!.status, resumed!.crashed], ["running", false]);
  const all = await new WatchedRuns(home, { clock, all: true }).facts();
  deepStrictEqual(all.map(({ id }) => id), ["new", "done", "b", "a"]);
});

Deno.test("WatchedRuns reads nothing of a run whose journal has not grown", async () => {
  const { home, clock } = await timedHome();
  const run = await started(home, "a");
  let reads = 0;
  const { store } = home;
  const counting = {
    heads: (filter: Parameters<Store["heads"]>[0]) => store.heads(filter),
    head: (id: string) => store.head(id),
    read: (...query: Parameters<Store["read"]>) => (reads++, store.read(...query)),
  };
  const runs = new WatchedRuns({ store: counting, artifacts: home.artifacts } as unknown as Home, {
    clock,
  });
  const before = await runs.facts();
  reads = 0;
  deepStrictEqual(await runs.facts(), before);
  strictEqual(reads, 0);
  await run.run(2);
  strictEqual((await runs.facts())[0]!.round, 2);
  strictEqual(reads, 2); // The new rows, and that there are no more.
});

Deno.test("WatchedRuns says of a damaged run why, and shows the others", async () => {
  const { home, clock } = await timedHome();
  await started(home, "odd");
  await started(home, "whole");
  await createFakeRun(home, "graphless");
  const store = home.store as MemoryStore;
  const [round] = await store.read("odd", { kinds: ["metrics"] });
  store.damage("odd", { seq: round!.seq, value: "null" }); // JSON, but nothing to read.
  const broken = damagedField({ id: "ownerless" }, { field: "owner", text: "{" });
  const damaging = {
    heads: async (filter: NonNullable<Parameters<Store["heads"]>[0]>) => {
      filter.onDamaged!(broken);
      const heads = await store.heads(filter);
      return heads.map((head): RunHead => head.id === "graphless" ? { ...head, error: "{" } : head);
    },
    head: (id: string) => store.head(id),
    read: (...query: Parameters<Store["read"]>) => store.read(...query),
  };
  const runs = new WatchedRuns({ store: damaging, artifacts: home.artifacts } as unknown as Home, {
    clock,
  });
  const facts = await runs.facts();
  deepStrictEqual(facts.map(({ id, status }) => [id, status]), [
    ["ownerless", null],
    ["graphless", null],
    ["whole", "running"],
    ["odd", null],
  ]);
  match(
    facts[0]!.damaged!,
    /^Cannot read run 'ownerless' because its 'owner' in the journal is damaged/,
  );
  match(facts[1]!.damaged!, /^Cannot read run 'graphless' because its 'error'/);
  match(facts[3]!.damaged!, /null/);
});
