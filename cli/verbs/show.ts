import { findRun, newestRun, runView } from "../../runs/mod.ts";
import { ARGUMENTS } from "../arguments.ts";
import { json } from "../options.ts";
import { print, printJson } from "../display/output.ts";
import { runText } from "../display/run_text.ts";
import { defineVerb } from "../verb.ts";

/** `show [RUN]`: the state of a run, a line for each fact. */
export const showVerb = defineVerb({
  name: "show",
  about: "show the state of a run",
  arguments: { "[run]": ARGUMENTS.run },
  options: { json },
  async action({ args, flags, globals }) {
    await globals.withHome(async (home) => {
      const head = await findRun(home, args.run ?? (await newestRun(home)));
      const view = await runView(home.store, head, await home.liveFacts(head.id));
      if (flags.json) printJson(view);
      else print(runText(view, home));
    });
  },
});
