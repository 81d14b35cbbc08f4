import type { RunHead } from "../../engine/mod.ts";
import type { ModelOpening } from "../../workers/mod.ts";
import type { Home } from "../home/home.ts";
import { currentConfig } from "./settings.ts";
import { modelOpening } from "./worker_blocks.ts";

/**
 * How a process that is none of a run's workers opens the run's model: as they do, but with kernels
 * of attention that this machine has.
 */
export async function baseOpening(
  { store }: Home,
  head: RunHead,
): Promise<Omit<ModelOpening, "attn_implementation">> {
  const { attn_implementation: _, ...opening } = modelOpening(await currentConfig(store, head));
  return opening;
}
