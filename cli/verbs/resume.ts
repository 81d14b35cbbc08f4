import { changedAlgorithm } from "../../configs/mod.ts";
import { InvalidInputError } from "../../engine/mod.ts";
import { findRun, type Home, MetricsFile, removeLeftovers } from "../../runs/mod.ts";
import { forkOf } from "../after_failure.ts";
import { ARGUMENTS } from "../arguments.ts";
import { BeforeRecording } from "../before_recording.ts";
import { EXIT } from "../exit.ts";
import { followRun } from "../followed_run.ts";
import { flag } from "../options.ts";
import { tell } from "../display/output.ts";
import { resumeOverrides } from "../resume_overrides.ts";
import { defineVerb } from "../verb.ts";

const UNCHANGED = "stopped before the run was resumed: nothing has changed";

/** `resume [RUN] [a.b=c ...]`: continues a run. */
export const resumeVerb = defineVerb({
  name: "resume",
  about: "resume a run (default: the newest interrupted or failed run)",
  arguments: { "[run]": ARGUMENTS.run, "[overrides...]": ARGUMENTS.overrides },
  options: {
    accept: flag("resume even if Holdfast or the graph has changed since the run started"),
  },
  action: ({ args: { run, overrides }, flags, globals }) => {
    const unnamed = run?.includes("=") === true;
    const id = unnamed ? undefined : run;
    const all = unnamed ? [run, ...overrides] : overrides;
    const accept = flags.accept === true;
    return new BeforeRecording({ nothing: UNCHANGED }).during((early) =>
      globals.withHome((home) => resume(home, id, { accept, overrides: all, early }))
    );
  },
});

/** Returns the exit code. */
async function resume(
  home: Home,
  id: string | undefined,
  options: { accept: boolean; overrides: readonly string[]; early: BeforeRecording },
): Promise<number> {
  const head = await findRun(home, id);
  if (head.status === "done") {
    // They may be missing, and nothing else writes them for a run that is done.
    await MetricsFile.remake(home, head);
    await removeLeftovers(home, head.id, tell);
    tell(`run ${head.id} is already done: nothing to resume`);
    return EXIT.done;
  }
  if (head.status === "cancelled") {
    throw new InvalidInputError(
      `Cannot resume run '${head.id}' because it was cancelled: start a new one`,
      {
        run: head.id,
      },
    );
  }
  const { refused: _, ...resumed } = await resumeOverrides(home, head, options);
  const changed = await changedAlgorithm(resumed.config);
  if (changed) {
    const text =
      `${changed} has changed: the run keeps the algorithm it started with. ${await forkOf(
        home,
        head,
      )}`;
    tell(text);
  }
  return await followRun(home, { head, ...resumed, accept: options.accept }, options.early);
}
