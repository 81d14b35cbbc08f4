import { type ArtifactStore, InvalidInputError } from "../../engine/mod.ts";
import {
  type CallOptions,
  type CallResult,
  ensureEnvironment,
  groupLimits,
  groupSpec,
  type OnEnvironmentProgress,
  type Operator,
  plannedGroups,
  rewardRole,
  type WorkerBlocks,
  Workers,
} from "../../workers/mod.ts";

type RewardWorkersOptions = {
  run: string;
  /** Where these processes have their files. */
  dir: string;
  blocks: WorkerBlocks | null;
  artifacts: ArtifactStore;
  onSetup?: OnEnvironmentProgress;
};

/** The reward processes of a run's configuration alone. They start at the first call. */
export class RewardWorkers implements Operator {
  readonly #options: RewardWorkersOptions;
  #started: Promise<Pick<Operator, "call">> | null = null;
  #workers: Workers | null = null;

  constructor(options: RewardWorkersOptions) {
    this.#options = options;
  }

  async call(op: string, args: unknown, options: CallOptions): Promise<CallResult> {
    this.#started ??= this.#start();
    return await (await this.#started).call(op, args, options);
  }

  async stop(): Promise<void> {
    await this.#started?.catch(() => undefined);
    await this.#workers?.stop();
  }

  async #start(): Promise<Pick<Operator, "call">> {
    const { run, dir, blocks, artifacts, onSetup: onProgress } = this.#options;
    if (blocks === null) {
      throw new InvalidInputError(
        `Cannot start reward processes for run '${run}' because its graph has no trainer, whose ` +
          "Python they would use. Fix: give a reward that needs none",
        { run },
      );
    }
    const [planned] = plannedGroups(blocks, [rewardRole]).values();
    const { environment, python: userPython } = planned!;
    const python = await ensureEnvironment(environment, { user_python: userPython, onProgress });
    const limits = groupLimits(rewardRole, blocks.workers);
    await Deno.mkdir(`${dir}/runs/${run}`, { recursive: true });
    const place = { run, home: dir, artifacts, epoch: 1, attempt: 1 };
    this.#workers = await Workers.start({ ...place, python });
    return this.#workers.group(groupSpec(rewardRole, planned!, { python, gpus: null, ...limits }));
  }
}
