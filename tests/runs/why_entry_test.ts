import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { InvalidInputError, type RunHead } from "../../engine/mod.ts";
import { forkRun } from "../../runs/mod.ts";
import { whyEntry } from "../../runs/why_entry.ts";
import { createFakeRun, executeFake, freshFakeHome } from "./fake_home.ts";

/** A run of four rounds, and a fork of its second. */
const home = await freshFakeHome();
await createFakeRun(home, "a", { rounds: 4 });
await executeFake(home, "a");
const headOf = async (run: string): Promise<RunHead> => (await home.store.head(run))!;
await forkRun(home, await headOf("a"), { round: 2, id: "b" });
await executeFake(home, "b");
const STEP = "train_policy";

Deno.test("whyEntry() names what an entry waited for, and its starts", async () => {
  const why = await whyEntry(home.store, await headOf("a"), `round/2/${STEP}`);
  const { key, stage, runs_on, state, waited_for, starts } = why;
  deepStrictEqual({ key, stage, runs_on, state }, {
    key: `round/2/${STEP}`,
    stage: "train_policy@1",
    runs_on: "trainer",
    state: "done",
  });
  deepStrictEqual([waited_for?.key, starts.length], ["round/2/assign_credit", 1]);
});

Deno.test("whyEntry() explains a fork's prefix by the run that made it", async () => {
  const fork = await headOf("b");
  const runOf = async (key: string) => (await whyEntry(home.store, fork, key)).run;
  strictEqual(await runOf("prepare_policy"), "a");
  strictEqual(await runOf(`round/2/${STEP}`), "a");
  strictEqual(await runOf(`round/3/${STEP}`), "b");
});

Deno.test("whyEntry() explains a run whose module is gone", async () => {
  const lost = { ...await headOf("a"), entry: "file:///nowhere/at/all.ts#lost" };
  const { waited_for, starts, ...rest } = await whyEntry(home.store, lost, `round/2/${STEP}`);
  deepStrictEqual([waited_for, starts.length, rest.state, rest.run], [null, 1, "done", "a"]);
});

async function refused(key: string, message: string): Promise<void> {
  await rejects(
    whyEntry(home.store, await headOf("a"), key),
    (error) => {
      strictEqual((error as Error).message, message);
      return error instanceof InvalidInputError;
    },
  );
}

Deno.test("whyEntry() names entries below a key that is none, eight of them at most", async () => {
  const rows = await home.store.read("a", { kinds: ["intent", "result"], prefix: "round/1" });
  const below = [...new Set(rows.map(({ key }) => key))].filter((key) =>
    key.startsWith("round/1/")
  );
  const named = below.slice(0, 8).map((key) => `\n  ${key}`).join("");
  const more = below.length > 8 ? `\n  and ${below.length - 8} more` : "";
  await refused(
    "round/1",
    `Cannot explain 'round/1' because run 'a' has no such entry. Below it are:${named}${more}`,
  );
});

Deno.test("whyEntry() suggests an entry of a similar name", async () => {
  await refused(
    "prepare_polcy",
    "Cannot explain 'prepare_polcy' because run 'a' has no such entry " +
      "(did you mean prepare_policy?)",
  );
});
