import project from "../deno.json" with { type: "json" };
import { didYouMean } from "../configs/mod.ts";
import { checkRunId, InvalidInputError } from "../engine/mod.ts";
import { Command } from "./command.ts";
import { GlobalOptions, HOME_HELP, STORE_HELP } from "./global_options.ts";
import { DEFAULT_HOME } from "./display/output.ts";
import { quickstart } from "./quickstart.ts";
import type { Verb, VerbOption } from "./verb.ts";
import { GROUPS, VERBS } from "./verbs/table.ts";

/** The command line with these verbs, as commander reads it. */
export function commandLine(
  verbs: readonly Verb[] = VERBS,
  groups: Readonly<Record<string, string>> = GROUPS,
): Command {
  const rl = new Command("rl");
  rl.description("Holdfast: durable post-training runs. Without a command, runs the quickstart.")
    .version(
      `holdfast ${project.version} (deno ${Deno.version.deno})`,
      "-V, --version",
      "print the version",
    )
    .option("--home <dir>", HOME_HELP, DEFAULT_HOME)
    .option("--store <url>", STORE_HELP)
    .option(
      "--id <id>",
      "id of the new run, for the quickstart and verbs that start a run (default: generated)",
      checkRunId,
    )
    .hook("preAction", (_, command) => refuseIdleId(command))
    .exitOverride().showSuggestionAfterError()
    .configureOutput({ outputError: (text, write) => write(text) });
  rl.allowExcessArguments().action(async (_flags: unknown, command: Command) => {
    const [unknown] = command.args;
    if (unknown !== undefined) throw noSuchCommand(rl, unknown);
    Deno.exitCode = await quickstart(GlobalOptions.of(command));
  });
  for (const verb of verbs) addVerb(rl, verb, groups);
  return rl;
}

/** `--id` may come before the verb, where every verb would accept it and ignore it. */
function refuseIdleId(command: Command): void {
  const { id } = command.optsWithGlobals<{ id?: string }>();
  if (
    id === undefined || command.parent === null ||
    command.options.some(({ long }) => long === "--id")
  ) return;
  const name = command.name();
  const names = command.registeredArguments.some((argument) => argument.name() === "run");
  throw new InvalidInputError(
    `Cannot use --id with '${name}' because it names a new run and '${name}' does not ` +
      "create one. Fix: " +
      (names ? `${name} ${id}` : "omit it"),
    { id },
  );
}

function noSuchCommand(rl: Command, name: string): InvalidInputError {
  const near = didYouMean(name, rl.commands.map((command) => command.name()));
  return new InvalidInputError(
    `Cannot run '${name}' because there is no such command${near}: --help lists them`,
    { name },
  );
}

function addVerb(rl: Command, verb: Verb, groups: Readonly<Record<string, string>>): void {
  const words = verb.name.split(" ");
  const parent = words.length === 1 ? rl : groupOf(rl, words[0]!, groups);
  const command = parent.command(words.at(-1)!).description(verb.about);
  for (const [usage, about] of Object.entries(verb.arguments)) command.argument(usage, about);
  if (!verb.homeless) command.option("--home <dir>", HOME_HELP).option("--store <url>", STORE_HELP);
  for (const [name, option] of Object.entries(verb.options)) addOption(command, name, option);
  command.action(async () => {
    const names = command.registeredArguments.map((argument) => argument.name());
    const code = await verb.action({
      args: Object.fromEntries(names.map((name, i) => [name, command.processedArgs[i]])),
      flags: command.opts(),
      globals: GlobalOptions.of(command),
    });
    if (code !== undefined) Deno.exitCode = code;
  });
}

/** A group joins the command line with the first of its verbs. */
function groupOf(
  rl: Command,
  name: string,
  groups: Readonly<Record<string, string>>,
): Command {
  return rl.commands.find((command) => command.name() === name) ??
    rl.command(name).description(groups[name]!);
}

function addOption(command: Command, name: string, declared: VerbOption<unknown>): void {
  const long = `--${name.replaceAll("_", "-")}`;
  const { short, takes, read } = declared;
  const names = short === undefined ? long : `${short}, ${long}`;
  const option = command.createOption(
    takes === undefined ? names : `${names} ${takes}`,
    declared.help,
  );
  option.default(declared.default).makeOptionMandatory(declared.required ?? false);
  if (read) option.argParser((text: string, before: unknown) => read(text, long, before));
  command.addOption(option);
}
