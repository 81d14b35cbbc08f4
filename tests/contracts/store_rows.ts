import type { NewRow, NewRun, Owner, Store } from "../../engine/stores/store.ts";
import type { ManualClock } from "../../engine/clock.ts";

/**
 * What a test of the contract is given. `second` opens another connection to the same data, where
 * the driver can have one.
 */
export type Bench = { store: Store; clock: ManualClock; second?: () => Store };
export type Declare = (title: string, body: (bench: Bench) => Promise<void>) => void;

export const LEASE = { lease_ms: 10_000 };

export function newRun(id: string): NewRun {
  return {
    id,
    name: `run ${id}`,
    entry: "flows/mod.ts",
    graph: "g",
    graph_hash: "h",
    config: "{}",
    packages: "{}",
  };
}

export function newOwner(name: string): Owner {
  return { boot_id: name, host: "host", pid: 7, process_start: "1" };
}

export function row(key: string, fields: Partial<NewRow> = {}): NewRow {
  return { kind: "result", key, value: `{"of":"${key}"}`, ...fields };
}

/** Creates and claims a run; answers its epoch. */
export async function started(store: Store, id = "a"): Promise<number> {
  await store.create(newRun(id));
  return (await store.claim(id, newOwner("one"), LEASE)).head.epoch;
}

export async function keys(store: Store, run: string): Promise<string[]> {
  return (await store.read(run)).map((found) => found.key);
}
