import { gpuEnv, type GpuPlace } from "./gpus.ts";
import type { FailureFacts } from "../failures/failures.ts";
import type { AnyRole, PlannedGroup } from "../roles/role.ts";

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
    & Pick<GroupSpec, "start_timeout_ms" | "no_progress_ms">,
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
