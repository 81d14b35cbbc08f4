import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { POSTGRES_MISSING } from "../postgres.ts";
import { PostgresCluster } from "../postgres_cluster.ts";
import { SMALL } from "./runs.ts";
import { disturbed } from "./survive.ts";
import { sharedUndisturbed } from "./undisturbed.ts";

const ignore = POSTGRES_MISSING !== null;

Deno.test({
  name:
    "a run whose PostgreSQL is restarted every few seconds, in order and by power loss, ends equal with the same workers",
  ignore,
  fn: async () => {
    const against = await sharedUndisturbed(SMALL);
    const cluster = await PostgresCluster.start();
    try {
      const { shown } = await disturbed({
        against,
        store: cluster.url,
        disturb: async ({ reached }) => {
          for (
            const [write, mode] of [[8, "fast"], [20, "immediate"], [32, "fast"], [
              44,
              "immediate",
            ]] as const
          ) {
            await reached("engine", "append", write);
            await cluster.restart(mode);
          }
        },
      });
      deepStrictEqual(shown.recoveries, []);
      strictEqual(shown.epoch, 1);
    } finally {
      await cluster.dispose();
    }
  },
});
