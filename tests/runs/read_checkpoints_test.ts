import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { Home, readCheckpoints } from "../../runs/mod.ts";
import { damagedStore } from "./garbage/damaged_store.ts";
import { createFakeRun, executeFake, freshFakeHome } from "./fake_home.ts";

/** Six rounds, a checkpoint after each second one. */
async function withRun(keep_last: number, others = {}): Promise<Home> {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { checkpoints: { every_rounds: 2, keep_last, ...others } });
  strictEqual((await executeFake(home, "a")).status, "done");
  return home;
}

Deno.test("readCheckpoints() lists what a run has kept, oldest first", async () => {
  for (
    const { keep_last, rounds } of [{ keep_last: 3, rounds: [2, 4, 6] }, {
      keep_last: 1,
      rounds: [6],
    }]
  ) {
    const list = await readCheckpoints(await withRun(keep_last), "a", { verify: false });
    deepStrictEqual(list.map(({ round }) => round), rounds);
    deepStrictEqual(
      list.map(({ group, verified, problem }) => [group, verified, problem]),
      list.map(() => ["trainer", false, null]),
    );
    strictEqual(list.at(-1)!.kept.includes("last"), true);
  }
});

Deno.test("readCheckpoints() lists weights that stay of dropped checkpoints, until a person removes them", async () => {
  const home = await withRun(1, { keep_weights_every: 2 });
  const facts = async () =>
    (await readCheckpoints(home, "a", { verify: true })).map((c) => [
      c.round,
      c.kept.join(),
      c.files,
      c.problem,
    ]);
  const last = [6, "last,in_use", 2, null];
  deepStrictEqual(await facts(), [[2, "weights", 1, null], [4, "weights", 1, null], last]);
  const [first, second] = await readCheckpoints(home, "a", { verify: false });
  await Deno.remove(first!.dir, { recursive: true });
  await Deno.writeTextFile(`${second!.dir}/hf/weights.json`, "0");
  const [damaged, ...rest] = await facts();
  deepStrictEqual([damaged![0], typeof damaged![3], rest], [4, "string", [last]]);
});

Deno.test("readCheckpoints() finds a lost file only where it verifies", async () => {
  const home = await withRun(1);
  const [whole] = await readCheckpoints(home, undefined, { verify: true });
  deepStrictEqual([whole!.verified, whole!.problem], [true, null]);
  for (const { name } of Deno.readDirSync(whole!.dir)) {
    await Deno.remove(`${whole!.dir}/${name}`, { recursive: true });
  }
  const [unseen] = await readCheckpoints(home, "a", { verify: false });
  const [found] = await readCheckpoints(home, "a", { verify: true });
  deepStrictEqual([unseen!.problem, typeof found!.problem], [null, "string"]);
});

Deno.test("readCheckpoints() names a damaged row", async () => {
  const { dir, store, artifacts } = await withRun(1);
  for (const kind of ["note/checkpoint", "note/checkpoint_dropped"] as const) {
    for (const value of ["{", "{}"]) {
      const home = new Home(dir, { store: damagedStore(store, { kind, value }), artifacts });
      await rejects(readCheckpoints(home, "a", { verify: false }), {
        code: "lost_record",
        message: new RegExp(`^Cannot read the '${kind}' row of .* Fix: put the journal back`),
      });
    }
  }
});
