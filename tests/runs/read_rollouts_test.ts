import { deepStrictEqual, rejects } from "node:assert/strict";
import { graph } from "../../engine/mod.ts";
import { openData, preparePolicy, scoredRollouts, trainedOn } from "../../flows/mod.ts";
import { Home, readRollouts } from "../../runs/mod.ts";
import { OnlineConfig } from "../../configs/mod.ts";
import { damagedStore } from "./garbage/damaged_store.ts";
import { execute, onlineConfig, stores } from "../flows/fixtures.ts";

/** Two loops, neither called round. */
const named = graph("named", OnlineConfig, (g, config) => {
  const start = g.stage(preparePolicy, {
    model_path: config.model.path,
    optimizer: config.trainer.optimizer,
  });
  const data = g.stage(openData, { split: "train" });
  const rounds = (name: string, policy: typeof start) =>
    g.loop(name, { times: 2, carry: { policy } }, (r) => {
      const scored = scoredRollouts(r, config, {
        data,
        round: r.index,
        policy: r.carried("policy"),
      });
      return {
        policy: trainedOn(r, config, { scored, policy: r.carried("policy"), reference: start }),
      };
    }).policy;
  return rounds("later", rounds("first", start));
});

Deno.test("readRollouts() finds samples of the newest loop, or the named one", async () => {
  const used = await stores();
  await execute(named, onlineConfig(used.model), used);
  const home = new Home(used.dir, used);
  const places = async (options: { round?: number; loop?: string }) => {
    const samples = await readRollouts(home, "run", { ...options, limit: 100 });
    return [...new Set(samples.map(({ loop, round }) => `${loop}/${round}`))];
  };
  deepStrictEqual(await places({}), ["later/2"]);
  deepStrictEqual(await places({ loop: "first" }), ["first/2"]);
  deepStrictEqual(await places({ loop: "first", round: 1 }), ["first/1"]);
  await rejects(
    places({ loop: "none", round: 1 }),
    /none\/1 of 'run' because .* Loops with scored groups: first, later/,
  );
});

Deno.test("readRollouts() names a damaged row", async () => {
  const used = await stores();
  await execute(named, onlineConfig(used.model), used);
  for (const value of ["{", '{"output":{}}']) {
    const store = damagedStore(used.store, { kind: "result", value });
    await rejects(readRollouts(new Home(used.dir, { ...used, store }), "run", { limit: 1 }), {
      code: "lost_record",
      message: /^Cannot read the 'result' row of .* Fix: put the journal back/,
    });
  }
});
