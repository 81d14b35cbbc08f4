import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { POSTGRES_MISSING } from "../postgres.ts";
import { STORES } from "./campaign_stores.ts";
import { kills, verdicts } from "./kills.ts";

/** Of the seeded kills, whose whole list is one command: `deno run -A tests/crash/kills.ts`. */
const COUNT = 12;

Deno.test("quickstart_small killed at seeded points ends bit-identical to an undisturbed run", async () => {
  const state = await Deno.makeTempDir({ prefix: "holdfast-kills-" });
  const stores = POSTGRES_MISSING === null ? STORES : STORES.filter((name) => name === "sqlite");
  if (POSTGRES_MISSING !== null) {
    console.log(`kills with PostgreSQL are left out: ${POSTGRES_MISSING}`);
  }
  try {
    const all = await kills({ stores, count: COUNT / stores.length, seed: 7, state });
    strictEqual(all.length, COUNT);
    deepStrictEqual(verdicts(all), []);
  } finally {
    await Deno.remove(state, { recursive: true });
  }
});
