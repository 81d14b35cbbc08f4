import { startFile, STARTS } from "../start_run.ts";
import { defineVerb } from "../verb.ts";

/** `run CONFIG`: records a run, then executes it, or queues it for `serve`. */
export const runVerb = defineVerb({
  name: "run",
  about: "start a run",
  ...STARTS,
  action: (call) => startFile(call),
});
