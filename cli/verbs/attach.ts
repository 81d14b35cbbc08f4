import { systemClock } from "../../engine/mod.ts";
import { findRun, newestRun } from "../../runs/mod.ts";
import { ARGUMENTS } from "../arguments.ts";
import { attach } from "../attached_run.ts";
import { errorScreen } from "../display/output.ts";
import { interruptible } from "../interruptible.ts";
import { defineVerb } from "../verb.ts";

/** `attach [RUN]`: what `run` shows, of a run that another process executes. */
export const attachVerb = defineVerb({
  name: "attach",
  about: "follow a run that any engine executes (default: the newest run); Ctrl-C only detaches",
  arguments: { "[run]": ARGUMENTS.run },
  options: {},
  action: ({ args: { run }, globals }) =>
    globals.withHome(async (home) => {
      const head = await findRun(home, run ?? await newestRun(home));
      const screen = errorScreen();
      return await interruptible((detach) =>
        attach(home, head, { screen, clock: systemClock, detach })
      );
    }),
});
