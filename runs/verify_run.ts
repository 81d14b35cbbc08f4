import { checkJournal, InvalidInputError, removeTree, type RunHead } from "../engine/mod.ts";
import {
  ensureEnvironment,
  NO_TIMEOUTS,
  type OnEnvironmentProgress,
  type WorkerBlocks,
  type WorkersOptions,
} from "../workers/mod.ts";
import type { Home } from "./home/home.ts";
import { OWN_NAMES } from "../flows/mod.ts";
import { presentModels } from "./session/hub_models.ts";
import { refuseOtherHome } from "./home/run_directories.ts";
import { workerBlocks } from "./session/worker_blocks.ts";
import { currentConfig } from "./session/settings.ts";
import {
  type Recorded,
  redoVersions,
  rowsToRedo,
  type Verified,
  type VerifiedVersion,
  versionsToRedo,
} from "./verify.ts";
import { WorkerGroups, type WorkerGroupsOptions } from "./session/worker_groups.ts";

/** Which versions are compared, and the callback for each. */
export type VerifyRunOptions = {
  /** Versions with fewer trained batches are redone but not compared. */
  from?: number;
  onVersion?: (version: VerifiedVersion) => void;
  onWorkers?: WorkersOptions["onEvent"];
  /** Called while a Python environment is created. */
  onSetup?: OnEnvironmentProgress;
  /** Creates the workers that redo; real ones by default. */
  workers?: (options: WorkerGroupsOptions) => RedoingWorkers;
};
/**
 * The part of the worker groups that redoes.
 * @internal
 */
export type RedoingWorkers = Pick<WorkerGroups, "start" | "stop" | "trainer" | "critic">;

/**
 * Seconds. Nothing waits for a redo, and a machine that verifies during a run may be slow; the
 * run's own limit is for hangs.
 */
export const NO_PROGRESS_S = 3600;

/**
 * Verifies a run on a separate trainer, in a separate directory under the run's: an engine that
 * executes the run meanwhile, and its workers, are left alone, and nothing is written to the
 * journal.
 * @throws {InvalidInputError} If the run has no trainer, or has trained nothing.
 */
export async function verifyRun(
  home: Home,
  head: RunHead,
  options: VerifyRunOptions = {},
): Promise<Verified> {
  const config = await currentConfig(home.store, checkJournal(head));
  const blocks = workerBlocks(config);
  if (blocks === null) {
    throw new InvalidInputError(
      `Cannot verify run '${head.id}' because its graph trains no policy`,
      { run: head.id },
    );
  }
  await refuseOtherHome(home, head);
  const { artifacts } = home;
  // Before anything is created for it: an environment takes a minute and a gibibyte.
  const versions = await versionsToRedo(home.store, head, { artifacts, from: options.from });
  await presentModels(home.store, { head, config }, { onSetup: options.onSetup });
  const dir = `${home.runDir(head.id)}/verify-${crypto.randomUUID().slice(0, 8)}`;
  try {
    await Deno.mkdir(`${dir}/runs/${head.id}`, { recursive: true });
    return await redone(home, head, { ...options, versions, blocks, dir });
  } finally {
    await removeTree(dir, { home: home.dir, named: OWN_NAMES.verifying, owner: null });
  }
}

type Redoing = VerifyRunOptions & { versions: Recorded[]; blocks: WorkerBlocks; dir: string };

async function redone(
  home: Home,
  head: RunHead,
  { versions, blocks, dir, ...options }: Redoing,
): Promise<Verified> {
  const { onVersion, onWorkers, onSetup, workers = (wanted) => new WorkerGroups(wanted) } = options;
  const { artifacts } = home;
  const groups = workers({
    run: head.id,
    home: dir,
    blocks: {
      ...blocks,
      sampler: { ...blocks.sampler, replicas: 0 },
      others: {},
      workers: {
        ...blocks.workers,
        ...NO_TIMEOUTS,
        no_progress_s: Math.max(NO_PROGRESS_S, blocks.workers.no_progress_s),
      },
    },
    artifacts,
    recorded: await rowsToRedo(home.store, head),
    python: (kind, userPython) =>
      ensureEnvironment(kind, { user_python: userPython, onProgress: onSetup }),
    onEvent: onWorkers,
  });
  try {
    groups.start(1);
    const redoing = { trainer: groups.trainer, critic: groups.critic ?? undefined };
    return await redoVersions(head, versions, { ...redoing, dir, onVersion });
  } finally {
    await groups.stop();
  }
}
