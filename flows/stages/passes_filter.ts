import type { RewardShaping } from "../../rewards/mod.ts";
import { BadDataError } from "../../engine/mod.ts";
import type { ScoredGroup } from "./score_group.ts";

/**
 * Whether a group is usable by a score apart from its rewards: its mean is inside the range, or, if
 * there is none, its values differ. Samples to which it does not apply have none; a group without
 * any is not usable. The range is that of OpenRLHF `3c3be62`, `ppo_utils/samples_generator.py`,
 * where its ends are outside too.
 * @throws {BadDataError} If no sample of a group that its reward scored has the number.
 */
export function passesFilter(
  group: Pick<ScoredGroup, "parts" | "group">,
  { by, above, below }: NonNullable<RewardShaping["filter"]>,
): boolean {
  const scores = group.parts[by];
  const [reward] = by.split("/");
  if (scores === undefined && group.parts[reward!]?.some((score) => score !== null)) {
    throw new BadDataError(
      `Cannot filter groups by ${by} because ${reward} did not return it for every sample of ` +
        `draw ${group.group.draw}: that has ${Object.keys(group.parts).join(", ")}. ` +
        "Fix: correct reward_shaping.filter.by, or return it always",
      { draw: group.group.draw },
    );
  }
  const values = (scores ?? []).filter((value) => value !== null);
  if (values.length === 0) return false;
  if (above === undefined && below === undefined) {
    return values.some((value) => value !== values[0]);
  }
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  return mean > (above ?? -Infinity) && mean < (below ?? Infinity);
}
