import { parse } from "yaml";
import { InvalidInputError, signalRun } from "../engine/mod.ts";
import type { Home } from "../flows/mod.ts";
import { print } from "./output.ts";
import { findRun } from "./runs.ts";

/** `signal RUN NAME [VALUE]`: recorded in the store, whoever executes the run, and even if nobody does yet. */
export async function signalCommand(
  home: Home,
  id: string,
  { name, text }: { name: string; text?: string },
): Promise<void> {
  const run = (await findRun(home, id)).id;
  const value = text === undefined ? null : parsed(text);
  await signalRun(home.store, run, { name, value });
  print(`run ${run} has the signal '${name}': ${JSON.stringify(value)}`);
}

function parsed(text: string): unknown {
  try {
    return parse(text) ?? null;
  } catch (error) {
    throw new InvalidInputError(
      `Cannot read '${text}' as a signal's value because it is not YAML: ${(error as Error).message.split("\n")[0]}. ` +
        "Fix: quote it, as in '\"text\"'",
    );
  }
}
