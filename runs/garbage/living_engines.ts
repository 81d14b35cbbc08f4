/** Runs whose engine may be putting files into a home at this moment. */
import { ownerAlive, type RunHead } from "../../engine/mod.ts";
import type { Home } from "../home/home.ts";

/**
 * An engine that cannot be observed counts as alive: an owner that is late, but not superseded,
 * keeps working.
 */
export function isLive({ owner }: RunHead): boolean {
  return owner !== null && ownerAlive(owner) !== "dead";
}

/** Runs that keep their files in this home; a shared PostgreSQL has others too. */
export async function runsOf<T extends Pick<RunHead, "home">>(
  home: Home,
  heads: readonly T[],
): Promise<T[]> {
  const here = await home.identity();
  return heads.filter((head) => head.home === null || head.home === here);
}

/** Those of the home's runs whose engine lives. */
export async function livingRuns(home: Home, heads: readonly RunHead[]): Promise<RunHead[]> {
  return (await runsOf(home, heads)).filter(isLive);
}
