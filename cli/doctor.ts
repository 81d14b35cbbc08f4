import { machineChecks } from "../runs/mod.ts";
import { print, printJson } from "./output.ts";

/**
 * `doctor`: what this machine has, one line each with its verdict and its fix. True: nothing
 * failed.
 */
export async function doctor(options: { home: string; store?: string; json?: boolean }): Promise<boolean> {
  const checks = await machineChecks(options.home, options);
  if (options.json) printJson(checks);
  else {
    for (const { name, verdict, says, fix } of checks) {
      print(`${verdict.padEnd(4)}  ${name.padEnd(14)} ${says}${fix === null ? "" : `. ${fix}`}`);
    }
  }
  return checks.every(({ verdict }) => verdict !== "FAIL");
}
