import { CommanderError } from "commander";
import { ConfigError } from "../configs/mod.ts";
import { DataError } from "../data/mod.ts";
import { EngineError } from "../engine/mod.ts";
import { commandLine } from "./command_line.ts";
import { EXIT, isBadInput } from "./exit.ts";
import { visible } from "./display/visible.ts";

/** Runs the command line; returns the exit code. */
export async function main(args: string[], rl = commandLine()): Promise<number> {
  try {
    await rl.parseAsync(args, { from: "user" });
    return Deno.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.bad_input;
    if (error instanceof ConfigError || error instanceof DataError) {
      console.error(visible(error.message));
      return EXIT.bad_input;
    }
    if (error instanceof EngineError) {
      console.error(visible(error.message));
      return isBadInput(error) ? EXIT.bad_input : EXIT.failed;
    }
    console.error(visible(Deno.inspect(error))); // Unexpected: the stack says where.
    return EXIT.failed;
  }
}

if (import.meta.main) Deno.exit(await main(Deno.args));
