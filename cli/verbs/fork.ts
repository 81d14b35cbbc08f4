import { InvalidInputError } from "../../engine/mod.ts";
import { findRun, forkRun, type Home, resumable } from "../../runs/mod.ts";
import { ARGUMENTS } from "../arguments.ts";
import { BeforeRecording } from "../before_recording.ts";
import { followRun } from "../followed_run.ts";
import { loopAndRound } from "../display/loop_and_round.ts";
import { flag, id, required } from "../options.ts";
import { leaveQueued, QUEUE_OPTIONS, type Queued, queuedOf } from "../queued.ts";
import { NO_RUN } from "../start_run.ts";
import { defineVerb } from "../verb.ts";

/**
 * `fork RUN --round N [a.b=c ...]`: records a run that continues from a closed round of another
 * run, then executes it.
 */
export const forkVerb = defineVerb({
  name: "fork",
  about: "start a new run from a closed round of an existing one, with different settings",
  arguments: { "<run>": ARGUMENTS.run, "[overrides...]": ARGUMENTS.overrides },
  options: {
    id,
    ...QUEUE_OPTIONS,
    accept: flag("fork even if another release of Holdfast has recorded the run"),
    round: required("<n>", "the last round to keep; 0: none; step/3: of the loop 'step'"),
  },
  action: ({ args: { run, overrides }, flags, globals }) => {
    const options = {
      id: globals.id,
      round: flags.round,
      overrides,
      accept: flags.accept === true,
      queued: queuedOf(flags),
    };
    return new BeforeRecording({ nothing: NO_RUN }).during((early) =>
      globals.withHome((home) => fork(home, run, { ...options, early }))
    );
  },
});

type ForkOptions = {
  round: string;
  overrides: readonly string[];
  id?: string;
  accept: boolean;
  queued?: Queued;
  early: BeforeRecording;
};

/** Returns the exit code. */
async function fork(home: Home, run: string, options: ForkOptions): Promise<number> {
  const { overrides, accept, queued, early } = options;
  const parent = await findRun(home, run);
  const head = await early.record(() =>
    forkRun(home, parent, {
      ...roundOf(options.round),
      overrides,
      accept,
      id: options.id,
      ...queued,
    })
  );
  if (queued) return leaveQueued(home, head);
  const { graph, config } = await resumable(home, head);
  return await followRun(home, { head, graph, config }, early);
}

/** `3`, counted in the graph's last loop, or `step/3` in a loop of that name. */
function roundOf(text: string): { round: number; loop?: string } {
  const place = loopAndRound(text);
  if (place !== null) return place;
  throw new InvalidInputError(
    `Cannot fork at round '${text}': give a whole number, or a loop and a number as in ` +
      "step/3 (0: before its first round)",
    { round: text },
  );
}
