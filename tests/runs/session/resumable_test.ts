import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { ConfigError } from "../../../configs/mod.ts";
import { InvalidInputError } from "../../../engine/mod.ts";
import type { Home } from "../../../runs/mod.ts";
import { forkableRound, resumable } from "../../../runs/session/resumable.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

/** A run that has closed four rounds. */
async function fourRounds(): Promise<Home> {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 4 });
  await executeFake(home, "a");
  return home;
}
const home = await fourRounds();
const head = (await home.store.head("a"))!;

type Read = { seed: number; sampler: { replicas: number }; trainer: { optimizer: { lr: number } } };

Deno.test("resumable() without overrides is the recorded run", async () => {
  const { graph, config, replan, settings, refused } = await resumable(home, head);
  strictEqual(graph.hash, head.graph_hash);
  deepStrictEqual({ replan, settings, refused }, { replan: {}, settings: [], refused: [] });
  deepStrictEqual((config as Read).sampler.replicas, 1);
});

Deno.test("resumable() sorts overrides into replans, settings and refused ones", async () => {
  const { config, replan, settings, refused } = await resumable(home, head, {
    overrides: [
      "trainer.devices=[0, 2]",
      "sampler.replicas=3",
      "trainer.optimizer.lr=0.5",
    ],
  });
  deepStrictEqual(replan, { "trainer.devices": [0, 2] });
  deepStrictEqual(settings, [{ path: "sampler.replicas", read_by: "workers", from: 1, to: 3 }]);
  deepStrictEqual(refused, [{ path: "trainer.optimizer.lr", from: 0.1, to: 0.5 }]);
  const { sampler, trainer } = config as Read;
  deepStrictEqual([sampler.replicas, trainer.optimizer.lr], [3, 0.1], "what is refused stays");
});

Deno.test("resumable() finds nothing to change in a value that the run has", async () => {
  const { settings, refused } = await resumable(home, head, {
    overrides: ["sampler.replicas=1", "seed=3"],
  });
  deepStrictEqual({ settings, refused }, { settings: [], refused: [] });
});

Deno.test("resumable() says what is no override, and what is no setting", async () => {
  await rejects(
    resumable(home, head, { overrides: ["trainer.devices"] }),
    (error) =>
      error instanceof InvalidInputError &&
      /^Cannot resume with 'trainer\.devices' because /.test(error.message),
  );
  await rejects(resumable(home, head, { overrides: ["sampler.replica=3"] }), ConfigError);
});

Deno.test("forkableRound() is the newest closed round that takes the overrides", async () => {
  deepStrictEqual(await forkableRound(home, head, ["trainer.optimizer.lr=0.5"]), { round: 4 });
});

Deno.test("forkableRound() is 0 for a setting that the first round has fixed", async () => {
  const overrides = ["trainer.optimizer.weight_decay=0.1"];
  deepStrictEqual(await forkableRound(home, head, overrides), { round: 0 });
});

Deno.test("forkableRound() says why the newest round refuses, if every round does", async () => {
  deepStrictEqual(await forkableRound(home, head, ["seed=4"]), {
    refused: "Cannot fork run 'a' at round 4 of 'round' because its prefix has fixed:\n" +
      "  seed: everything random in the prefix came from it\n" +
      "Leave it as it is, or start a new run",
  });
});
