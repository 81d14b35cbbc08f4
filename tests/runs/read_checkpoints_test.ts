import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { type Home, readCheckpoints } from "../../runs/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "./fake_home.ts";

/** Six rounds, a checkpoint after each second one. */
async function withRun(keep_last: number): Promise<Home> {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { checkpoints: { every_rounds: 2, keep_last } });
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
