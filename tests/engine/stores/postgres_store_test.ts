import { storeContract } from "../../contracts/store_contract.ts";
import { follow, NOW_SQL, POSTGRES_MISSING, testSchema } from "../../postgres.ts";

storeContract("PostgreSQL", async (clock) => {
  const schema = testSchema();
  await follow(clock, schema);
  const open = () => schema.open({ now_sql: NOW_SQL, patience_ms: 5_000 });
  return { store: open(), second: open, dispose: () => schema.dispose() };
}, { ignore: POSTGRES_MISSING !== null, shared: true });
