/**
 * Which names in a run's directories are ours, and how a run's stages remove what is no longer
 * needed.
 */
import { type Context, RemovalRefusedError, removeTree } from "../engine/mod.ts";
import { Paths } from "./resources.ts";

const CHECKPOINT = /\d{6,}-[0-9a-f]{12}-(?:\d+-\d+|(?:now|handover)-[0-9a-f]{8})/;
const WEIGHTS = /[0-9a-f]{16}/;

/**
 * Names that Holdfast gives in a run's directories. Nothing of another name is removed: a person
 * may have put it there.
 */
export const OWN_NAMES = {
  /** Of a trainer's checkpoint, and of the form in which another number of ranks reads it. */
  checkpoint: new RegExp(`(?:\\.universal\\.)?${CHECKPOINT.source}`),
  /** A publication or a reference that is whole. */
  weights: WEIGHTS,
  /** One that is being written, or replaced. */
  unfinished_weights: new RegExp(`\\.${WEIGHTS.source}\\.(?:tmp|\\d+\\.old)`),
  /** A model that the run makes or exports, while it is being written or replaced. */
  unfinished_model: /\.[A-Za-z0-9][A-Za-z0-9._-]*\.(?:tmp|\d+\.(?:tmp|old))/,
  /** Where the run's engine listened, and what a killed one had begun to write of it. */
  hub: /hub\.json(?:\.[0-9a-f]{16})?/,
  logs: /attempt_\d+/,
  verifying: /verify-[0-9a-f]{8}/,
} as const;

/**
 * Removes one of the run's directories, for a stage that has just asked whether its engine still
 * owns the run. One that may not be removed stays, and the log says why: a run does not fail
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
