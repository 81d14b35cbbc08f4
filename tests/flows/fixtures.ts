import { OnlineConfig, QuickstartConfig } from "../../configs/mod.ts";
import { type RowTable, tableOf } from "../../data/mod.ts";
import {
  ArtifactStore,
  Engine,
  type EngineOptions,
  type GraphDefinition,
  type Outcome,
} from "../../engine/mod.ts";
import {
  type FakeRun,
  fakeRun,
  type FakeRunOptions,
  MemoryStore,
  writeFakeModel,
} from "../../testing/mod.ts";
import type { ScoredItem } from "../../workers/mod.ts";

// In memory: what is tested here is order, not the disk.
const SHARED_MEMORY = "/dev/shm";

export async function scratch(): Promise<string> {
  const dir = await Deno.stat(SHARED_MEMORY).then(() => SHARED_MEMORY, () => undefined);
  const scratchDir = await Deno.makeTempDir({ dir, prefix: "flows_test_" });
  globalThis.addEventListener("unload", () => remove(scratchDir)); // It is memory: thousands were left.
  return scratchDir;
}

function remove(dir: string): void {
  try {
    Deno.removeSync(dir, { recursive: true });
  } catch {
    // Gone already, or an engine that was taken for dead still writes there: what stays is no
    // test's failure.
  }
}

/** A quickstart of `rounds` online rounds, small enough for fakes to run it many times. */
export function smallQuickstart(
  { rounds, every_rounds }: { rounds: number; every_rounds: number },
): QuickstartConfig {
  return QuickstartConfig.parse({
    flow: "quickstart",
    warmup: { rounds: 2, rows_per_round: 2 },
    online: { rounds, prompts_per_round: 2, samples_per_prompt: 2 },
    reward: [{ name: "length", unit: "characters", max: 8 }],
    evaluate: { problems: 2 },
    checkpoints: { every_rounds, keep_last: 1 },
  });
}

/** What the reward worker answers for an item. */
export function scoredItem(item: { id: string } & Partial<ScoredItem>): ScoredItem {
  return { outcome: "ok", score: null, metrics: {}, error: null, ms: 0, ...item };
}

/** `size` rows whose answers are their own numbers. */
export function rowsOf(size: number, digest = `rows-${size}`): RowTable {
  const rows = Array.from({ length: size }, (_, n) => ({
    row_id: `row-${n}`,
    prompt: `say ${n}`,
    answer: String(n),
    columns: { n },
  }));
  return tableOf(rows, digest);
}

/**
 * Two prompts of two samples a round, scored by length: fake completions have 1 to 8 characters, so
 * groups differ.
 */
export function onlineConfig(model: string, overrides: Record<string, unknown> = {}): OnlineConfig {
  return OnlineConfig.parse({
    flow: "online",
    seed: 3,
    rounds: 3,
    prompts_per_round: 2,
    samples_per_prompt: 2,
    model: { path: model },
    data: { train: [{ path: "train.jsonl" }] },
    algorithm: { name: "grpo" },
    reward: [{ name: "length", unit: "characters", max: 8 }],
    trainer: { optimizer: { lr: 0.1 } },
    rollouts: { slab_groups: 1 },
    checkpoints: { every_rounds: 2, keep_last: 1 },
    ...overrides,
  });
}

type Stores = { store: MemoryStore; artifacts: ArtifactStore; dir: string; model: string };

/** A home in memory with a model in it. */
export async function stores(): Promise<Stores> {
  const dir = await scratch();
  const model = `${dir}/model`;
  await writeFakeModel(model, 0.5);
  return { store: new MemoryStore(), artifacts: new ArtifactStore(`${dir}/artifacts`), dir, model };
}

type Executed<T> = FakeRun & { outcome: Outcome<T> };

/** One engine's start at a run that is created if it is not there, with fresh fake workers. */
export async function execute<In, C, T>(
  definition: GraphDefinition<In, C, T>,
  config: NoInfer<In>,
  options: Omit<FakeRunOptions, "run" | "rows"> & Partial<FakeRunOptions> & {
    engine?: Partial<EngineOptions>;
  },
): Promise<Executed<T>> {
  const { store, artifacts, run = "run", rows = { train: rowsOf(16), eval: rowsOf(4) } } = options;
  const fake = await fakeRun({ ...options, run, rows });
  const engine = new Engine({ store, artifacts, resources: fake.resources, ...options.engine });
  if (await store.head(run) === null) await engine.create(definition, config, { id: run });
  return { ...fake, outcome: await engine.execute(run, definition.build(config)) };
}
