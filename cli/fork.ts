import { InvalidInputError } from "../engine/mod.ts";
import { findRun, forkRun, type Home, resumable } from "../runs/mod.ts";
import type { BeforeRecording } from "./before_recording.ts";
import { loopAndRound } from "./loop_and_round.ts";
import { begin, leaveQueued, type Queued } from "./run.ts";

type ForkFlags = {
  round: string;
  overrides: readonly string[];
  id?: string;
  queued?: Queued;
  early: BeforeRecording;
};

/**
 * `fork RUN --round N [a.b=c ...]`: records a run that continues from a closed round of another
 * run, then executes it.
 */
export async function forkCommand(home: Home, id: string, flags: ForkFlags): Promise<number> {
  const { overrides, queued, early } = flags;
  const parent = await findRun(home, id);
  const head = await early.record(() =>
    forkRun(home, parent, {
      ...roundOf(flags.round),
      overrides,
      id: flags.id,
      ...queued,
    })
  );
  if (queued) return leaveQueued(home, head);
  const { graph, config } = await resumable(home, head);
  return await begin(home, { head, graph, config }, early);
}

/** `3`, counted in the graph's last loop, or `step/3` in a loop of that name. */
function roundOf(text: string): { round: number; loop?: string } {
  const place = loopAndRound(text);
  if (place !== null) return place;
  throw new InvalidInputError(
    `Cannot fork at round '${text}': give a whole number, or a loop and a number as in step/3 (0: before its first round)`,
    { round: text },
  );
}
