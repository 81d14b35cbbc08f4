/**
 * Engines that live one after another on one store, each until its store fails it; and what they
 * must not do.
 */
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import {
  ArtifactStore,
  Engine,
  InfrastructureError,
  type Owner,
  provide,
  type Store,
} from "../../engine/mod.ts";
import { Crashed } from "../../testing/mod.ts";
import { digestOf } from "../simulation/audit.ts";
import { Operator, type Plan, SIGNAL, workload } from "../simulation/workload.ts";

const RUN = "run";
const WRITES = new Set<PropertyKey>(["claim", "append", "finish", "release", "reopen"]);
/** A disk in memory, where there is one: what dies only in the mind needs no fsync. */
export const MEMORY_DIR = existsSync("/dev/shm") ? "/dev/shm" : undefined;
const artifacts = new ArtifactStore("/nonexistent/crash");

export const FULL: Plan = {
  times: 3,
  lag: 1,
  lists: [2, 0, 1],
  steps: 1,
  children: 2,
  failures: [0, 0, 1],
  branch: true,
  until: 3,
  eager: false,
  checkpoints: 2,
  hangs: false,
  sleep_ms: 1,
  signal: true,
};
export const SMALL: Plan = { ...FULL, times: 2, lists: [1, 1], children: 1, eager: true };

/**
 * Where an engine's store fails it. `before`: it dies and the write is not carried out; `after`: it
 * dies when the write is durable; `full`: from that write on there is no room, though the engine
 * lives and can read.
 */
type Crash = { write: number; moment: "before" | "after" | "full" };

/** What a store says that has no room. */
function diskFull(): InfrastructureError {
  return new InfrastructureError(
    "Cannot append because the disk is full. Free some space, then resume",
    {},
    {
      retryable: false,
    },
  );
}

/** How a life may end: its process died, or its store had no room. */
function isUsual(error: unknown): boolean {
  return error instanceof Crashed ||
    (error instanceof InfrastructureError && error.message.includes("because the disk is full"));
}

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
      if (crash?.moment === "full" && WRITES.has(call) && writes >= crash.write) throw diskFull();
      if (here) dead = true;
      if (here && crash?.moment === "before") throw new Crashed();
      const answer = await (store[call] as (...args: unknown[]) => Promise<unknown>).apply(
        store,
        args,
      );
      if (WRITES.has(call)) this.writes++;
      if (call === "append") this.#note(args[2] as { kind: string; key: string }[]);
      if (here) throw new Crashed();
      return answer;
    };
    return new Proxy(store, {
      get: (_, call: keyof Store) => (...args: unknown[]) => carryOut(call, args),
    });
  }

  #note(rows: { kind: string; key: string }[]): void {
    for (const { kind, key } of rows) if (kind === "result") this.#completed.add(key);
  }
}

/** An engine of a process that is dead already: whoever comes next takes the run at once. */
function ownerOf(life: number): Owner {
  return {
    boot_id: `life-${life}`,
    host: hostname(),
    pid: 4_000_000 + life,
    process_start: "long ago",
  };
}

export type Ended = { outcome: unknown; digest: unknown; watch: Watch; lives: number };

type Lives = {
  plan: Plan;
  /** The store of each life: the same, or the same file opened again. */
  open: (life: number) => Store | Promise<Store>;
  /** What happens to each life; those after do not die. */
  crashes?: readonly Crash[];
};

/** Runs the plan to its end, through one engine after another. */
export async function runThrough({ plan, open, crashes = [] }: Lives): Promise<Ended> {
  const watch = new Watch();
  const definition = workload(plan, (start) => watch.started(start));
  const built = definition.build({});
  let store = await open(0);
  await new Engine({ store, artifacts }).create(definition, {}, { id: RUN });
  for (let life = 0;; life++) {
    if (life > 0) store = await open(life);
    const engine = new Engine({
      store: watch.over(store, crashes[life]),
      artifacts,
      owner: ownerOf(life),
      slots: { sampler: 2 },
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
      if (!isUsual(error)) throw error;
    }
  }
}
