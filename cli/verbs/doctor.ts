import { machineChecks } from "../../runs/mod.ts";
import { EXIT } from "../exit.ts";
import { json } from "../options.ts";
import { print, printJson } from "../display/output.ts";
import { defineVerb } from "../verb.ts";

/** `doctor`: what this machine has, one line each with its verdict and its fix. */
export const doctorVerb = defineVerb({
  name: "doctor",
  about: "check this machine",
  arguments: {},
  options: { json },
  async action({ flags, globals: { home, store } }) {
    const checks = await machineChecks(home, { store });
    if (flags.json) printJson(checks);
    else {
      for (const { name, verdict, says, fix } of checks) {
        print(`${verdict.padEnd(4)}  ${name.padEnd(14)} ${says}${fix === null ? "" : `. ${fix}`}`);
      }
    }
    return checks.every(({ verdict }) => verdict !== "FAIL") ? EXIT.done : EXIT.failed;
  },
});
