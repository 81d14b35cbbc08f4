import { z } from "zod";
import {
  ArtifactStore,
  defineStage,
  Engine,
  type EngineOptions,
  type Graph,
  graph,
  type GraphDefinition,
  ManualClock,
  type Outcome,
  provide,
} from "../../engine/mod.ts";
import { FakeWorkers, fakeWorkers, MemoryStore } from "../../testing/mod.ts";

/** Artifacts of all tests of this process; the folder is made only when a value moves there. */
export const artifacts = new ArtifactStore(Deno.makeTempDirSync({ prefix: "engine_test_" }));

export const Sampler = fakeWorkers("sampler");
export const Trainer = fakeWorkers("trainer");

/** A run on a memory store, with the engine that executes it. */
type Bench = {
  store: MemoryStore;
  engine: Engine;
  clock: ManualClock;
  sampler: FakeWorkers;
  trainer: FakeWorkers;
};

export function bench(options: Partial<EngineOptions> & { store?: MemoryStore } = {}): Bench {
  const clock = (options.clock ?? new ManualClock()) as ManualClock;
  const store = options.store ?? new MemoryStore({ clock });
  const sampler = new FakeWorkers((task) =>
    (task.input as { answer?: unknown }).answer ?? task.key
  );
  const trainer = new FakeWorkers();
  const resources = [
    provide(Sampler, sampler),
    provide(Trainer, trainer),
    ...(options.resources ?? []),
  ];
  return {
    store,
    clock,
    sampler,
    trainer,
    engine: new Engine({ artifacts, clock, ...options, store, resources }),
  };
}

export const NoConfig = z.strictObject({});

/** Creates and executes a run of a graph without configuration. */
export async function runOnce<T>(
  { engine }: Pick<Bench, "engine">,
  definition: GraphDefinition<Record<string, never>, Record<string, never>, T>,
  id = "run",
): Promise<Outcome<T>> {
  await engine.create(definition, {}, { id });
  return await engine.execute(id, definition.build({}));
}

/** A graph of one stage with this body. */
export function soleStage(
  run: Parameters<typeof defineStage>[0]["run"],
  options: Partial<Parameters<typeof defineStage>[0]> = {},
): {
  definition: GraphDefinition<Record<string, never>, Record<string, never>, unknown>;
  built: Graph<unknown>;
} {
  const stage = defineStage({
    name: "sole",
    version: 1,
    input: z.unknown(),
    output: z.unknown(),
    ...options,
    run,
  });
  const definition = graph("sole", NoConfig, (g) => g.stage(stage, {}));
  return { definition, built: definition.build({}) };
}

/** Failures that the run has recorded, in order. */
export function failures(store: MemoryStore): { attempt: number; next_ms: number | null }[] {
  return store.rows("run").filter((row) => row.kind === "failure").map((row) =>
    JSON.parse(row.value)
  );
}

/** Retries without a pause. */
export const AT_ONCE = { backoff: { first_ms: 0, max_ms: 0 } };
