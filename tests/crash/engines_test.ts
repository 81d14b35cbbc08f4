import { deepStrictEqual } from "node:assert/strict";
import { POSTGRES_MISSING } from "../postgres.ts";
import { duels, wrongWith } from "./engines.ts";

/**
 * Three of the seeded duels; the whole list is one command: `deno run -A tests/crash/engines.ts`.
 */
Deno.test({
  name:
    "two engines on one PostgreSQL: one is killed or frozen, the other ends its run with the same workers and weights",
  ignore: POSTGRES_MISSING !== null,
  async fn() {
    const state = await Deno.makeTempDir({ prefix: "holdfast-duels-" });
    try {
      const all = await duels({ store: "postgres", count: 3, seed: 11, state });
      deepStrictEqual(
        all.flatMap((duel) => wrongWith(duel).map((what) => `${duel.fault}: ${what}`)),
        [],
      );
    } finally {
      await Deno.remove(state, { recursive: true });
    }
  },
});
