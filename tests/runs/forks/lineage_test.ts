import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { InvalidInputError, type Store } from "../../../engine/mod.ts";
import {
  ancestors,
  forkRun,
  isTakenOver,
  readTakenOver,
  recordedDigests,
  residentRows,
} from "../../../runs/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

const FORK = { run: "a", round: 2, seq: 40, loop: "round", overrides: [] };

Deno.test("isTakenOver() ends at the forked round, and at the last row that was read", () => {
  const cases: [key: string, seq: number, taken: boolean][] = [
    ["prepare_policy", 1, true],
    ["prepare_policy", 41, false],
    ["round/2", 40, true],
    ["round/2/train_policy", 39, true],
    ["round/3/draw_prompts", 38, false],
    ["round/10/draw_prompts", 38, false],
    ["rounding/3/draw", 38, true],
  ];
  for (const [key, seq, taken] of cases) {
    strictEqual(isTakenOver({ key, seq }, FORK), taken, `${key} ${seq}`);
  }
});

/** A run of six rounds, a fork of its fourth round, and a fork of that one's second. */
async function makeFamily() {
  const home = await freshFakeHome();
  const first = await createFakeRun(home, "a");
  await executeFake(home, "a");
  await forkRun(home, (await home.store.head("a"))!, { round: 4, id: "b" });
  await executeFake(home, "b");
  const last = await forkRun(home, (await home.store.head("b"))!, { round: 2, id: "c" });
  return { home, first, last };
}
const family = await makeFamily();

Deno.test("ancestors() are the runs that rows were taken from, nearest first", async () => {
  const { home, first, last } = family;
  deepStrictEqual(await ancestors(home.store, first), []);
  // The second round is the first run's own: the fork in between has only read it.
  deepStrictEqual((await ancestors(home.store, last)).map(({ run, round }) => [run, round]), [
    ["a", 2],
  ]);
  const between = (await home.store.head("b"))!;
  deepStrictEqual((await ancestors(home.store, between)).map(({ run, round }) => [run, round]), [
    ["a", 4],
  ]);
});

Deno.test("ancestors() names a parent that is not in the store", async () => {
  const { home, last } = family;
  const read: Store["read"] = (run, query) => home.store.read(run, query);
  const store = { read, head: () => Promise.resolve(null) } as unknown as Store;
  await rejects(
    ancestors(store, last),
    (error: Error) =>
      error instanceof InvalidInputError &&
      error.message === "Cannot read run 'c' because its parent 'a' is not in this store",
  );
});

Deno.test("readTakenOver() holds the versions up to the forked round", async () => {
  const { home, last } = family;
  const rows = await readTakenOver(home.store, last, { kinds: ["note/version"] });
  deepStrictEqual(rows.map(({ value }) => JSON.parse(value).number), [0, 1, 2]);
});

Deno.test("residentRows() of a fork has inherited versions and own checkpoints", async () => {
  const { home } = family;
  const fork = (await home.store.head("b"))!;
  const rows = await residentRows(home.store, fork);
  const versions = rows.filter(({ kind }) => kind === "note/version");
  deepStrictEqual(versions.map(({ value }) => JSON.parse(value).number), [0, 1, 2, 3, 4, 5, 6]);
  const dirs = rows.filter(({ kind }) => kind === "note/checkpoint").map(({ value }) =>
    JSON.parse(value).dir as string
  );
  deepStrictEqual(dirs.filter((dir) => dir.includes("/a/")), []);
});

Deno.test("recordedDigests() of a fork has those of the runs before it", async () => {
  const { home } = family;
  const [parent, fork] = await Promise.all(
    ["a", "b"].map(async (id) => await recordedDigests(home.store, (await home.store.head(id))!)),
  );
  for (const [version, digest] of parent!) strictEqual(fork!.get(version), digest);
  strictEqual(parent!.size > 0, true);
});
