import type { AnyRole, Phase, PlannedGroup, WorkerBlocks } from "./role.ts";
import { rewardRole } from "./reward.ts";
import { samplerRole } from "./sampler.ts";
import { trainerRole } from "./trainer.ts";

/** Every role. Groups get their GPUs in this order. */
export const ROLES = [
  trainerRole,
  samplerRole,
  rewardRole,
];

/** The phase of a role's operation; `other` if none is declared. */
export function operationPhase(role: string, op: string, roles: readonly AnyRole[] = ROLES): Phase {
  return roles.find(({ name }) => name === role)?.operations[op]?.phase ?? "other";
}

/** The groups of a run, each with its role, by their names. */
export function plannedGroups(
  blocks: WorkerBlocks,
  roles: readonly AnyRole[] = ROLES,
): Map<string, PlannedGroup & { role: AnyRole }> {
  const planned = roles.filter(({ name, block }) =>
    block === null || blocks.others?.[name] !== undefined
  )
    .flatMap((role) =>
      role.groups(blocks, blocks.others?.[role.name]).map((group) => ({ ...group, role }))
    );
  return new Map(planned.map((group) => [group.group, group]));
}
