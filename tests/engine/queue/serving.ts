/** Engines that serve queues on one store, in simulated time. */
import { z } from "zod";
import {
  defineStage,
  Engine,
  type Graph,
  graph,
  type Liveness,
  ManualClock,
  type Outcome,
  type Owner,
  provide,
  type ServeEvent,
  type ServeOptions,
  serveQueues,
  type Taken,
} from "../../../engine/mod.ts";
import { FakeWorkers, MemoryStore } from "../../../testing/mod.ts";
import { artifacts, NoConfig, Sampler } from "../fixtures.ts";

export const LEASE_MS = 8000;
const QUEUES = { default: Infinity };

const work = defineStage({
  name: "work",
  version: 1,
  runs_on: "sampler",
  input: z.strictObject({ item: z.number() }),
  output: z.unknown(),
  run: (input, ctx) =>
    ctx.resource(Sampler).run({ key: `${ctx.run}/${ctx.key}`, signal: ctx.signal }, input),
});
const list = defineStage({
  name: "list",
  version: 1,
  input: z.strictObject({}),
  output: z.array(z.number()),
  run: () => [1, 2],
});
export const definition = graph("two", NoConfig, (g) => g.map(work, g.stage(list, {}), {}));
export const built = definition.build({});

export type Serving = {
  owner: Owner;
  workers: FakeWorkers;
  events: ServeEvent[];
  drain: AbortController;
  served: Promise<void>;
  runsOf: (type: ServeEvent["type"]) => string[];
};

export function ownerOf(name: string): Owner {
  return { boot_id: name, host: "host", pid: 7, process_start: name };
}

/** One engine on a store, with workers that wait for the test unless `answer` is given. */
export function serving(
  { store, clock, name = "one" }: { store: MemoryStore; clock: ManualClock; name?: string },
  changes: Partial<ServeOptions<Graph>> & {
    answer?: (task: { key: string; input: unknown }) => unknown;
  } = {},
): Serving {
  const { answer, ...options } = changes;
  const [owner, workers, drain] = [ownerOf(name), new FakeWorkers(answer), new AbortController()];
  const events: ServeEvent[] = [];
  const shared = { store, clock, owner, lease_ms: LEASE_MS };
  const execute = async ({ head, graph }: Taken<Graph>, signal: AbortSignal): Promise<Outcome> => {
    const resources = [provide(Sampler, workers)];
    return await new Engine({ ...shared, artifacts, resources }).execute(head.id, graph, {
      claimed: head,
      drain: signal,
    });
  };
  const served = serveQueues({
    ...shared,
    queues: QUEUES,
    look: () => Promise.resolve({ graph: built }),
    execute,
    until_idle: true,
    alive: (): Liveness => "alive",
    onEvent: (event) => events.push(event),
    ...options,
  }, drain.signal);
  const runsOf = (type: ServeEvent["type"]) =>
    events.flatMap((e) => e.type === type && "run" in e ? [e.run] : []);
  return { owner, workers, events, drain, served, runsOf };
}

export async function withRuns(
  ids: string[],
  options: { queue?: string; needs?: Record<string, number> } = {},
) {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  const engine = new Engine({ store, artifacts, clock });
  for (const id of ids) await engine.create(definition, {}, { id, queue: "default", ...options });
  return { clock, store };
}

export async function statuses(store: MemoryStore): Promise<Record<string, string>> {
  return Object.fromEntries((await store.heads()).reverse().map(({ id, status }) => [id, status]));
}

/** Lets time go on, half a second at once, so that what was woken can ask for its next sleep. */
export async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let i = 0; i < ms; i += 500) await clock.advance(500);
}

/** The store, asked through `refuse`: what it returns is thrown instead. */
export function guarded(
  store: MemoryStore,
  refuse: (operation: string) => Error | undefined,
): MemoryStore {
  return new Proxy(store, {
    get(target, field: keyof MemoryStore) {
      const value = target[field];
      if (typeof value !== "function") return value;
      return (...parameters: unknown[]) => {
        const error = refuse(field);
        return error
          ? Promise.reject(error)
          : (value as (...parameters: unknown[]) => unknown).apply(target, parameters);
      };
    },
  });
}

/** Lets time go on until the promise settles. */
export async function passing<T>(clock: ManualClock, promise: Promise<T>): Promise<T> {
  let over = false;
  promise.finally(() => over = true).catch(() => {});
  for (let i = 0; i < 1000 && !over; i++) await clock.advance(500);
  return await promise;
}
