import { resolve } from "node:path";
import { findRun, mergeAdapter } from "../../../runs/mod.ts";
import { ARGUMENTS } from "../../arguments.ts";
import { text } from "../../options.ts";
import { tell } from "../../display/output.ts";
import { defineVerb } from "../../verb.ts";

/** `adapter merge RUN [--to DIR]`: the run's final adapter and its base, as one plain model. */
export const adapterMergeVerb = defineVerb({
  name: "adapter merge",
  about: "merge a run's final adapter into its base model",
  arguments: { "<run>": ARGUMENTS.run },
  options: { to: text("<dir>", "the directory to write (default: final_merged beside final)") },
  action: ({ args, flags: { to }, globals }) =>
    globals.withHome(async (home) => {
      return await mergeAdapter(home, await findRun(home, args.run), {
        target: to === undefined ? null : resolve(to),
        onSetup: ({ text }) => tell(text),
      });
    }),
});
