/**
 * A graph with every construct is killed at its n-th durable write, for every n, before the write and after it, on the memory
 * store and on SQLite. Killed: the engine hears nothing more from its store, and another one goes on with what is there.
 * `tests/engine/crash_property_test.ts` draws graphs and several crashes at random; `tests/simulation` adds time.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { hostname } from "node:os";
import { ArtifactStore, Engine, type Owner, provide, SqliteStore, type Store } from "../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../engine/testing.ts";
import { digestOf } from "../simulation/audit.ts";
import { Operator, type Plan, SIGNAL, workload } from "../simulation/workload.ts";

const RUN = "run";
const WRITES = new Set<PropertyKey>(["claim", "append", "finish", "release", "reopen"]);
const artifacts = new ArtifactStore("/nonexistent/crash");

const FULL: Plan = {
  ...{ times: 3, lag: 1, lists: [2, 0, 1], steps: 1, children: 2, failures: [0, 0, 1], branch: true, until: 3 },
  ...{ eager: false, checkpoints: 2, hangs: false, sleep_ms: 1, signal: true },
};
const SMALL: Plan = { ...FULL, times: 2, lists: [1, 1], children: 1, eager: true };

/** Where an engine dies. `before`: the write is not carried out. */
type Crash = { write: number; moment: "before" | "after" };

/** Counts writes and starts over all engines of a run. */
class Watch {
  writes = 0;
  readonly starts = new Map<string, number>();
  readonly again: string[] = [];
  readonly #completed = new Set<string>();

  started({ key }: { key: string }): number {
    if (this.#completed.has(key)) this.again.push(key);
    const count = (this.starts.get(key) ?? 0) + 1;
    this.starts.set(key, count);
    return count;
  }

  /** The store as one engine has it, until it dies. */
  over(store: Store, crash?: Crash): Store {
    let writes = 0;
    let dead = false;
    const carryOut = async (call: keyof Store, args: unknown[]) => {
      if (dead) throw new Crashed();
      const here = WRITES.has(call) && ++writes === crash?.write;
      if (here) dead = true;
      if (here && crash?.moment === "before") throw new Crashed();
      const answer = await (store[call] as (...args: unknown[]) => Promise<unknown>).apply(store, args);
      if (WRITES.has(call)) this.writes++;
      if (call === "append") this.#note(args[2] as { kind: string; key: string }[]);
      if (here) throw new Crashed();
      return answer;
    };
    return new Proxy(store, { get: (_, call: keyof Store) => (...args: unknown[]) => carryOut(call, args) });
  }

  #note(rows: { kind: string; key: string }[]): void {
    for (const { kind, key } of rows) if (kind === "result") this.#completed.add(key);
  }
}

/** An engine of a process that is dead already: whoever comes next takes the run at once. */
function ownerOf(life: number): Owner {
  return { boot_id: `life-${life}`, host: hostname(), pid: 4_000_000 + life, process_start: "long ago" };
}

type Ended = { outcome: unknown; digest: unknown; watch: Watch; lives: number };

/** Runs the plan to its end, through one engine after another. Engines after the listed crashes do not die. */
async function runThrough(
  { plan, store, crashes }: { plan: Plan; store: Store; crashes: readonly Crash[] },
): Promise<Ended> {
  const watch = new Watch();
  const definition = workload(plan, (start) => watch.started(start));
  const built = definition.build({});
  await new Engine({ store, artifacts }).create(definition, {}, { id: RUN });
  for (let life = 0;; life++) {
    const engine = new Engine({
      ...{ store: watch.over(store, crashes[life]), artifacts, owner: ownerOf(life), slots: { sampler: 2 } },
      backoff: { first_ms: 0, max_ms: 0 },
      resources: [provide(Operator, (_, { n }) => Promise.resolve(n * 2))],
      onEvent: (event) => {
        if (event.type === "stage_started" && event.key === "waits") give().catch(() => {});
      },
    });
    const give = async () => await engine.signal(RUN, SIGNAL, 3);
    try {
      const outcome = await engine.execute(RUN, built);
      return { outcome, digest: digestOf(await store.read(RUN)), watch, lives: life + 1 };
    } catch (error) {
      if (!(error instanceof Crashed)) throw error;
    }
  }
}

type Stores = { open(): Promise<Store> | Store; [Symbol.asyncDispose](): Promise<void> };

function memoryStores(): Stores {
  return { open: () => new MemoryStore(), [Symbol.asyncDispose]: () => Promise.resolve() };
}

async function sqliteStores(): Promise<Stores> {
  const dir = await Deno.makeTempDir({ prefix: "every-write-" });
  const opened: SqliteStore[] = [];
  const open = () => {
    opened.push(new SqliteStore(`${dir}/${opened.length}.db`));
    return opened.at(-1)!;
  };
  const close = async () => {
    for (const store of opened) await store.close();
    await Deno.remove(dir, { recursive: true });
  };
  return { open, [Symbol.asyncDispose]: close };
}

async function killAtEveryWrite({ plan, stores }: { plan: Plan; stores: Stores }): Promise<void> {
  await using used = stores;
  const calm = await runThrough({ plan, store: await used.open(), crashes: [] });
  strictEqual((calm.outcome as { status: string }).status, "done");
  ok(calm.watch.writes >= 15, `${calm.watch.writes} writes`);
  let killed = 0;
  for (let write = 1; write <= calm.watch.writes; write++) {
    for (const moment of ["before", "after"] as const) {
      const { outcome, digest, watch, lives } = await runThrough({
        ...{ plan, store: await used.open(), crashes: [{ write, moment }] },
      });
      const where = `killed ${moment} write ${write}`;
      deepStrictEqual(outcome, calm.outcome, where);
      deepStrictEqual(digest, calm.digest, where);
      deepStrictEqual(watch.again, [], where);
      killed += lives - 1;
    }
  }
  // How rows share commits differs a little from run to run, so that the very last writes may not be reached.
  ok(killed >= 2 * (calm.watch.writes - 3), `${killed} kills of ${2 * calm.watch.writes}`);
}

Deno.test("killed at every write, before and after it: equal state, nothing completed starts again (memory store)", async () => {
  await killAtEveryWrite({ plan: FULL, stores: memoryStores() });
  await killAtEveryWrite({ plan: { ...FULL, eager: true, lag: 2 }, stores: memoryStores() });
});

Deno.test("killed at every write, before and after it: equal state, nothing completed starts again (SQLite)", async () => {
  await killAtEveryWrite({ plan: SMALL, stores: await sqliteStores() });
});

Deno.test("engines that each die at their fourth write bring a run to its end", async () => {
  for (const moment of ["before", "after"] as const) {
    const calm = await runThrough({ plan: FULL, store: new MemoryStore(), crashes: [] });
    const crashes = Array.from({ length: 200 }, () => ({ write: 4, moment }));
    const killed = await runThrough({ plan: FULL, store: new MemoryStore(), crashes });
    ok(killed.lives > 10, `${killed.lives} lives`);
    deepStrictEqual([killed.outcome, killed.digest, killed.watch.again], [calm.outcome, calm.digest, []]);
  }
});
