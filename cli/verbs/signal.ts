import { parseDocument } from "yaml";
import { canonicalJson, InvalidInputError, signalRun } from "../../engine/mod.ts";
import { findRun, type Home } from "../../runs/mod.ts";
import { print } from "../display/output.ts";
import { defineVerb } from "../verb.ts";
import { ARGUMENTS } from "../arguments.ts";

/**
 * `signal RUN NAME [VALUE]`: records the signal in the store, even if no engine executes the run
 * yet.
 */
export const signalVerb = defineVerb({
  name: "signal",
  about: "send a run the signal that a stage awaits with ctx.signalled(name)",
  arguments: {
    "<run>": ARGUMENTS.run,
    "<name>": "the signal's name",
    "[value]": "YAML: true, 3, text, {by: ada} (default: null)",
  },
  options: {},
  action: ({ args: { run, name, value }, globals }) =>
    globals.withHome(async (home) => print(await sendSignal(home, run, { name, text: value }))),
});

/** Returns what it did. */
export async function sendSignal(
  home: Home,
  id: string,
  { name, text }: { name: string; text?: string },
): Promise<string> {
  const run = (await findRun(home, id)).id;
  const value = text === undefined ? null : parsed(text);
  await signalRun(home.store, run, { name, value });
  return `sent signal '${name}' to run ${run}: ${JSON.stringify(value)}`;
}

/** A value that the journal can hold. */
function parsed(text: string): unknown {
  try {
    const document = parseDocument(text);
    for (const problem of [...document.errors, ...document.warnings]) throw problem;
    const value = document.toJS() ?? null;
    canonicalJson(value);
    return value;
  } catch (error) {
    const [cause] = (error as Error).message.split("\n");
    throw new InvalidInputError(
      `Cannot read '${text}' as a signal's value because it is not plain YAML data: ${
        cause!.replace(/:$/, "")
      }. ` +
        "Fix: quote it, as in '\"text\"'",
    );
  }
}
