/** Files of the SQLite store, in a directory of their own. */
import { SqliteStore } from "../../../engine/stores/sqlite_store.ts";
import { newOwner, newRun } from "../../contracts/store_rows.ts";

export async function withFile(body: (path: string) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir();
  try {
    await body(`${dir}/home/holdfast.db`);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/** A store with run `a` claimed at epoch 1. */
export async function openStarted(path: string): Promise<SqliteStore> {
  const store = new SqliteStore(path);
  await store.create(newRun("a"));
  await store.claim("a", newOwner("one"), { lease_ms: 1_000 });
  return store;
}
