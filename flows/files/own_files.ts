/**
 * Which names in a run's directories belong to Holdfast, and how a run's stages remove files that
 * are no longer needed.
 */
import { type Context, RemovalRefusedError, removeTree } from "../../engine/mod.ts";
import { Paths } from "../resources.ts";

const CHECKPOINT = /\d{6,}-[0-9a-f]{12}-(?:\d+-\d+|(?:now|handover|start)-[0-9a-f]{8})/;
const WEIGHTS = /[0-9a-f]{16}/;

/**
 * Names that Holdfast uses in a run's directories. Files with other names are never removed: a
 * person may have put them there.
 */
export const OWN_NAMES = {
  /** A trainer's checkpoint, and its form for a different number of ranks. */
  checkpoint: new RegExp(`(?:\\.universal\\.)?${CHECKPOINT.source}`),
  /** A complete publication or reference. */
  weights: WEIGHTS,
  /** A publication or reference that is being written or replaced. */
  unfinished_weights: new RegExp(`\\.${WEIGHTS.source}\\.(?:tmp|\\d+\\.old)`),
  /** A model that the run creates or exports, while it is being written or replaced. */
  unfinished_model: /\.[A-Za-z0-9][A-Za-z0-9._-]*\.(?:tmp|\d+\.(?:tmp|old))/,
  /**
   * The address on which the run's engine listened, and a file of it that a killed engine left
   * half-written.
   */
  hub: /hub\.json(?:\.[0-9a-f]{16})?/,
  logs: /attempt_\d+/,
  verifying: /verify-[0-9a-f]{8}/,
  rescoring: /rescore-[0-9a-f]{8}/,
} as const;

/**
 * Removes one of the run's directories, for a stage that has just checked that its engine still
 * owns the run. If it must not be removed, it stays and the log says why: a run does not fail
 * because it could not tidy up.
 */
export async function removeOwn(ctx: Context, path: string, named: RegExp): Promise<void> {
  try {
    const { home, owner } = ctx.resource(Paths);
    await removeTree(path, { home, owner, named });
  } catch (error) {
    if (!(error instanceof RemovalRefusedError)) throw error;
    ctx.emit({ log: error.message });
  }
}
