/** A home whose runs have fake workers, for what works on several runs of it: fork, gc, diff. */
import {
  ArtifactStore,
  Engine,
  type EventListener,
  type ExecuteOptions,
  type RunHead,
  systemClock,
} from "../../engine/mod.ts";
import {
  fakeRun,
  type FakeRunOptions,
  FakeTrainer,
  MemoryStore,
  writeFakeModel,
} from "../../testing/mod.ts";
import type { OnlineConfig } from "../../configs/mod.ts";
import { SHIPPED } from "../../flows/mod.ts";
import { createRun, forkRun, Home, recordedDefinition, runView } from "../../runs/mod.ts";
import { online } from "../../flows/online.ts";
import type { RedoingWorkers } from "../../runs/verify_run.ts";
import type { WorkerGroupsOptions } from "../../runs/session/worker_groups.ts";
import { PolicyTrainer } from "../../workers/mod.ts";
import { onlineConfig, rowsOf, scratch } from "../flows/fixtures.ts";

/**
 * With a model and rows that the configuration's checks accept; the fake trainer reads one number
 * of it.
 */
export async function freshFakeHome(store = new MemoryStore()): Promise<Home> {
  const dir = await scratch();
  await writeFakeModel(`${dir}/model`, 0.5);
  for (const name of ["model/config.json", "model/model.safetensors", "train.jsonl"]) {
    await Deno.writeTextFile(`${dir}/${name}`, "");
  }
  return new Home(dir, { store, artifacts: new ArtifactStore(`${dir}/artifacts`) });
}

/** Of a run of six rounds. */
export function fakeConfig(home: Home, overrides: Record<string, unknown> = {}): OnlineConfig {
  return onlineConfig(`${home.dir}/model`, {
    rounds: 6,
    // Unchecked: the rows that are measured are an artifact that nothing refers to, which gc would
    // count.
    data: { train: [{ path: `${home.dir}/train.jsonl` }], on_long_prompt: "unchecked" },
    checkpoints: { every_rounds: 2, keep_last: 1 },
    ...overrides,
  });
}

/** Records a run of six rounds. */
export async function createFakeRun(
  home: Home,
  id: string,
  overrides: Record<string, unknown> = {},
): Promise<RunHead> {
  const config = fakeConfig(home, overrides);
  return await createRun(home, online, { config, id, entry: `${SHIPPED}online` });
}

/** One engine's start at a run, with fresh workers that hold nothing. */
export async function executeFake(
  home: Home,
  id: string,
  options:
    & { store?: MemoryStore; onEvent?: EventListener }
    & Partial<FakeRunOptions>
    & Pick<ExecuteOptions, "beforeEnd"> = {},
) {
  const { store = home.store as MemoryStore, onEvent, beforeEnd, ...rest } = options;
  const head = (await store.head(id))!;
  const { definition, config } = await recordedDefinition(store, head);
  const { artifacts } = home;
  const restart = head.parent && head.epoch === 0 ? "fork" as const : "resume" as const;
  const places = {
    store,
    artifacts,
    run: id,
    dir: `${home.dir}/work/${id}`,
    rows: { train: rowsOf(16) },
  };
  const fake = await fakeRun({ ...places, restart, ...rest });
  const engine = new Engine({ store, artifacts, resources: fake.resources, onEvent });
  const { status } = await engine.execute(id, definition.build(config), { beforeEnd });
  const { policy, ledger, recoveries } = await runView(store, (await store.head(id))!, {
    workers: [],
    metrics: {},
  });
  return {
    status,
    version: policy!.version,
    digest: policy!.digest,
    ledger,
    recoveries,
    trainer: fake.trainer,
  };
}

/** What people can see and do of a run: how it is shown, and how forks of its rounds end. */
export async function seen(home: Home, id: string) {
  const ended = await executeFake(home, id);
  return {
    status: ended.status,
    version: ended.version,
    digest: ended.digest,
    ledger: ended.ledger,
  };
}

/** A fork by the name of its parent. */
export async function forkFake(
  home: Home,
  from: string,
  options: { round: number; id: string; overrides?: string[] },
) {
  return await forkRun(home, (await home.store.head(from))!, options);
}

/** The workers of a verify, as fakes that hold nothing. */
export function fakeRedo({ artifacts, recorded, home, run }: WorkerGroupsOptions): RedoingWorkers {
  const operator = new FakeTrainer({ artifacts });
  const trainer = new PolicyTrainer({
    operator,
    artifacts,
    clock: systemClock,
    numerics: (tokens) => operator.numerics(tokens),
    recorded: recorded.map(({ kind, key, value }) => ({ kind, key, value: JSON.parse(value) })),
    checkpoints_dir: `${home}/checkpoints/${run}`,
  });
  return { trainer, critic: null, start: () => {}, stop: () => Promise.resolve() };
}
