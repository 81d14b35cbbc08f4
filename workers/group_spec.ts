import { gpuEnv, type GpuPlace } from "./gpus.ts";
import type { GroupSpec } from "./group.ts";
import type { AnyRole, PlannedGroup } from "./roles/role.ts";

/** A group as workers are started with it. `gpus`: those of `placeGpus`. */
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
