import { findRun, trackRun } from "../../runs/mod.ts";
import { ARGUMENTS } from "../arguments.ts";
import { EXIT } from "../exit.ts";
import { tell } from "../display/output.ts";
import { defineVerb } from "../verb.ts";

/** `track RUN [track=...]`: sends what the trackers of a run lack. */
export const trackVerb = defineVerb({
  name: "track",
  about: "send a run's metrics to its trackers, or to others",
  arguments: { "<run>": ARGUMENTS.run, "[overrides...]": "other trackers, as track=tensorboard" },
  options: {},
  action: ({ args: { run, overrides }, globals }) =>
    globals.withHome(async (home) => {
      const say = tell;
      const onSetup = ({ text }: { text: string }) => say(text);
      const head = await findRun(home, run);
      return await trackRun(home, head, { overrides, say, onSetup }) ? EXIT.done : EXIT.failed;
    }),
});
