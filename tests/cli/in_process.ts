import { commandLine } from "../../cli/command_line.ts";
import { main } from "../../cli/main.ts";
import { VERBS } from "../../cli/verbs/table.ts";
import type { Verb } from "../../cli/verb.ts";
import type { Home } from "../../runs/mod.ts";

/** `home`: the one that verbs open, such as one in memory. */
type InProcessOptions = { home?: Home; verbs?: readonly Verb[] };

/** Runs a command in this process: its exit code, and what it printed. Not help: see `commandLine`. */
export async function inProcess(
  args: string[],
  { home, verbs = VERBS }: InProcessOptions = {},
): Promise<{ code: number; out: string; err: string }> {
  const output = { out: "", err: "" };
  const { log, error } = console;
  const write = Deno.stderr.writeSync;
  const decoder = new TextDecoder();
  console.log = (text) => void (output.out += `${text}\n`);
  console.error = (text) => void (output.err += `${text}\n`);
  Deno.stderr.writeSync = (bytes) => (output.err += decoder.decode(bytes), bytes.length);
  try {
    const opened = home === undefined ? verbs : verbs.map((verb) => inHome(verb, home));
    return { code: await main(args, commandLine(opened)), ...output };
  } finally {
    Object.assign(console, { log, error });
    Deno.stderr.writeSync = write;
    Deno.exitCode = 0;
  }
}

function inHome(verb: Verb, home: Home): Verb {
  return {
    ...verb,
    action: ({ globals: { home: dir, store, id }, ...call }) =>
      verb.action({ ...call, globals: { home: dir, store, id, withHome: (work) => work(home) } }),
  };
}
