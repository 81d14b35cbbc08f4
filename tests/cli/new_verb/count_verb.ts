import { ARGUMENTS } from "../../../cli/arguments.ts";
import { json, whole } from "../../../cli/options.ts";
import { print, printJson } from "../../../cli/display/output.ts";
import { defineVerb } from "../../../cli/verb.ts";
import { findRun } from "../../../runs/mod.ts";

/** `count <run>`: how many rows a run's journal has. A verb for `new_verb_test.ts`. */
export const countVerb = defineVerb({
  name: "count",
  about: "count the rows of a run's journal",
  arguments: { "<run>": ARGUMENTS.run },
  options: { json, at_most: whole("<n>", "fail if there are more") },
  async action({ args, flags, globals }) {
    return await globals.withHome(async (home) => {
      const { id } = await findRun(home, args.run);
      const { length } = await home.store.read(id);
      if (flags.json) printJson({ run: id, rows: length });
      else print(`run ${id} has ${length} rows`);
      return length > (flags.at_most ?? length) ? 3 : 0;
    });
  },
});
