import { deepStrictEqual } from "node:assert/strict";
import type { RunHead } from "../../../engine/mod.ts";
import { collectableRows, descendants } from "../../../runs/garbage/collectable_rows.ts";
import { forkRun } from "../../../runs/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

const head = (id: string, parent: string | null = null) =>
  ({ id, parent: parent === null ? null : { run: parent, round: 1, seq: 1 } }) as RunHead;

Deno.test("descendants() are forks and the forks of those", () => {
  const heads = [
    head("a"),
    head("b", "a"),
    head("c", "b"),
    head("d", "a"),
    head("e"),
    head("f", "e"),
  ];
  deepStrictEqual(descendants(heads, heads[0]!).map(({ id }) => id), ["b", "c", "d"]);
  deepStrictEqual(descendants(heads, heads[2]!), []);
});

/** What goes of run `a`, which has six rounds and keeps one checkpoint. */
async function collected({ forkedAt }: { forkedAt?: number } = {}) {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  await executeFake(home, "a");
  const parent = (await home.store.head("a"))!;
  if (forkedAt !== undefined) await forkRun(home, parent, { round: forkedAt, id: "b" });
  const { store, artifacts } = home;
  const collecting = { store, artifacts, heads: await store.heads(), going: new Map() };
  const { seqs, from, forks } = await collectableRows(collecting, parent);
  const rows = (await store.read("a")).filter(({ seq }) => seqs.includes(seq));
  return {
    from,
    forks,
    rounds: [...new Set(rows.map(({ key }) => /^round\/(\d+)/.exec(key)?.[1]))],
  };
}

Deno.test("collectableRows() leaves the rounds from the oldest checkpoint on", async () => {
  const { from, forks, rounds } = await collected();
  deepStrictEqual(from, { round: { round: 6, why: "a checkpoint is of this round" } });
  deepStrictEqual(forks, []);
  deepStrictEqual(rounds.filter((round) => round !== undefined), ["1", "2", "3", "4", "5"]);
});

Deno.test("collectableRows() keeps the rounds that a fork is rebuilt through", async () => {
  const { from, forks } = await collected({ forkedAt: 3 });
  deepStrictEqual(forks, ["b"]);
  deepStrictEqual(from.round!.round <= 3, true);
  deepStrictEqual(from.round!.why, "fork 'b' needs it to rebuild its versions");
});
