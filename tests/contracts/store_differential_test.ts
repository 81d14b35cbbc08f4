import { deepStrictEqual } from "node:assert/strict";
import * as fc from "fast-check";
import { ManualClock } from "../../engine/clock.ts";
import { SqliteStore } from "../../engine/stores/sqlite_store.ts";
import type { Store } from "../../engine/stores/store.ts";
import { follow, NOW_SQL, POSTGRES_MISSING, testSchema } from "../postgres.ts";
import { ModelStore } from "./model_store.ts";
import { OPERATIONS, perform, snapshot } from "./store_operations.ts";

/** Every driver does what the model does, answer by answer and row by row. */
async function differential(clock: ManualClock, { oracle, drivers, runs }: Drivers): Promise<void> {
  let sequence = 0;
  await fc.assert(
    fc.asyncProperty(OPERATIONS, async (operations) => {
      const prefix = `s${sequence++}_`;
      for (const operation of operations) {
        if (operation.op === "advance") await clock.advance(operation.ms);
        const [answer, held] = [
          await perform(oracle, operation, prefix),
          await snapshot(oracle, prefix),
        ];
        for (const [name, store] of Object.entries(drivers)) {
          deepStrictEqual({ [name]: await perform(store, operation, prefix) }, { [name]: answer });
          deepStrictEqual({ [name]: await snapshot(store, prefix) }, { [name]: held });
        }
      }
    }),
    { numRuns: runs },
  );
}

type Drivers = { oracle: Store; drivers: Record<string, Store>; runs: number };

Deno.test("SQLite answers and holds what the model does, whatever the operations", async () => {
  const clock = new ManualClock();
  const dir = await Deno.makeTempDir();
  const sqlite = new SqliteStore(`${dir}/holdfast.db`, { clock });
  try {
    await differential(clock, { oracle: new ModelStore(clock), drivers: { sqlite }, runs: 200 });
  } finally {
    await sqlite.close();
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test({
  name: "PostgreSQL answers and holds what the model does, whatever the operations",
  ignore: POSTGRES_MISSING !== null,
  async fn() {
    const clock = new ManualClock();
    const schema = testSchema();
    await follow(clock, schema);
    try {
      const drivers = { postgres: schema.open({ now_sql: NOW_SQL }) };
      await differential(clock, { oracle: new ModelStore(clock), drivers, runs: 25 });
    } finally {
      await schema.dispose();
    }
  },
});
