import { ok, strictEqual } from "node:assert/strict";
import { openCampaignStore, STORES } from "../crash/campaign_stores.ts";
import { show, SMALL, withFreshHome } from "../crash/runs.ts";
import { assertEqualEnd, survive } from "../crash/survive.ts";
import { type Undisturbed, undisturbed } from "../crash/undisturbed.ts";
import { POSTGRES_MISSING } from "../postgres.ts";

let against: Undisturbed;
let fault: string;
Deno.test.beforeAll(async () => {
  against = await undisturbed(SMALL);
  // The trainer in its fifth step, then the engine between two durable writes.
  const writes = against.events.filter(({ place, event }) =>
    place === "engine" && event === "append"
  );
  fault = `kill:trainer@micro_batch:5,kill:engine@append:${Math.floor(writes.length * 0.75)}`;
});

for (const name of STORES) {
  Deno.test({
    name:
      `a run on ${name} whose trainer and engine are killed, and that is resumed, ends equal to an undisturbed one`,
    ignore: name === "postgres" && POSTGRES_MISSING !== null, // Which fails CI.
    fn: async () => {
      const store = await openCampaignStore(name);
      try {
        await withFreshHome(async (home) => {
          const place = { home, store: store.url };
          const killed = { run: "killed", config: SMALL, overrides: [], fault };
          const { deaths, last } = await survive(place, killed);
          strictEqual(last.code, 0, last.output);
          strictEqual(deaths, 1, "the engine was killed");
          const { recoveries } = await show(home, "killed", store.url);
          ok(recoveries.some(({ batches_redone }) => batches_redone > 0), "no batch was redone");
          await assertEqualEnd(place, "killed", against);
        });
      } finally {
        await store.close();
      }
    },
  });
}
