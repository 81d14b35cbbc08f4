import { gpuEnv, type GpuPlace } from "./gpus.ts";
import type { FailureFacts } from "../failures/failures.ts";
import type { AnyRole, Operations, PlannedGroup } from "../roles/role.ts";
import type { WorkersConfig } from "../workers_config.ts";

/** The time limits of a group, as `GroupSpec` has them. */
type GroupLimits = Pick<GroupSpec, "start_timeout_ms" | "no_progress_ms" | "timeouts">;

/** What a group is: one job, done by `ranks` processes of one Python environment. */
export type GroupSpec = {
  /** `trainer`, `sampler/0`, ... */
  group: string;
  role: string;
  ranks: number;
  /** The environment's interpreter. */
  python: string;
  /** Python module with the role's `Worker` class. */
  module: string;
  /** The resolved configuration, sent to every rank. */
  spec: unknown;
  env?: Record<string, string>;
  /**
   * The hosts of its ranks, which are spread evenly and in order. Default: hosts that have room.
   */
  hosts?: readonly string[];
  /** Environment of the ranks on a host, besides `env`: it puts them on that host's GPUs. */
  host_env?: Readonly<Record<string, Record<string, string>>>;
  start_timeout_ms?: number;
  /** For operations whose caller sets no limit. */
  no_progress_ms?: number;
  /** The same for all the time that an operation may take, by its name. `setting`: its source. */
  timeouts?: Readonly<Record<string, { limit_ms: number; setting: string }>>;
  /**
   * The same job without the device that broke. Only for groups that name their devices.
   * @throws {EngineError} If there are not enough devices left.
   */
  without?: (failure: FailureFacts) => GroupSpec;
  /**
   * The same job without a host that was given up. Only for groups that have GPUs on named hosts.
   * @throws {EngineError} If there is not enough left.
   */
  elsewhere?: (host: string) => GroupSpec;
};

/** Builds the spec that a group is started with. `gpus`: from `placeGpus`. */
export function groupSpec(
  { name: role, module }: Pick<AnyRole, "name" | "module">,
  { group, ranks, spec, env, gpus: needs }: PlannedGroup,
  options:
    & { python: string; gpus?: GpuPlace | null }
    & GroupLimits,
): GroupSpec {
  const { gpus = null, ...rest } = options;
  const all = { ...env, ...(needs && gpuEnv(needs.device, gpus)) };
  return {
    group,
    role,
    ranks,
    module,
    spec,
    ...rest,
    ...(Object.keys(all).length > 0 && { env: all }),
  };
}

/** The limits that a configuration sets for the groups of a role. */
export function groupLimits(
  { operations }: Pick<AnyRole, "operations">,
  workers: WorkersConfig,
): GroupLimits {
  const { start_timeout_s, no_progress_s } = workers;
  const timeouts = Object.entries(operations as Operations).flatMap(([op, { timed }]) => {
    const limit_s = timed && workers[`${timed}_timeout_s`];
    const setting = `workers.${timed}_timeout_s`;
    return limit_s ? [[op, { limit_ms: limit_s * 1000, setting }]] : [];
  });
  return {
    start_timeout_ms: start_timeout_s * 1000,
    no_progress_ms: no_progress_s * 1000,
    timeouts: Object.fromEntries(timeouts),
  };
}
