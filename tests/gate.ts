/**
 * The gate: `deno task test`. Format, lint with the import table, types, every fast test of both
 * languages and a whole run for each promise of the first page. Ends with one line
 * `N passed, N failed` that counts all of it.
 *
 * Arguments narrow it: `deno task test engine` runs its test files whose path contains "engine".
 * `deno task test --whole [NAME ...]` runs the long suites (`gate/suites.ts`) instead.
 */
import { parseArgs } from "node:util";
import { runGate } from "./gate/run_gate.ts";
import { runWhole } from "./gate/run_whole.ts";
import { untilInterrupted } from "./gate/interruption.ts";

const { values, positionals } = parseArgs({
  args: Deno.args,
  options: { whole: { type: "boolean", default: false } },
  allowPositionals: true,
});

const code = await untilInterrupted((running) =>
  values.whole ? runWhole(positionals, running) : runGate(positionals, running)
);
Deno.exit(code);
