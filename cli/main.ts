import { Command, CommanderError } from "commander";
import project from "../deno.json" with { type: "json" };
import { ConfigError, didYouMean, loadConfig, parseConfig } from "../configs/mod.ts";
import { DataError } from "../data/mod.ts";
import { checkRunId, EngineError, InvalidInputError } from "../engine/mod.ts";
import { DEFAULT_QUEUE, Home } from "../runs/mod.ts";
import { ARGUMENTS } from "./arguments.ts";
import { BeforeRecording } from "./before_recording.ts";
import { cancelCommand } from "./cancel.ts";
import { listCheckpoints } from "./checkpoints.ts";
import { printSchema, showConfig } from "./config.ts";
import { previewData } from "./data_preview.ts";
import { diffCommand } from "./diff.ts";
import { doctor } from "./doctor.ts";
import { fetchCommand } from "./fetch.ts";
import { forkCommand } from "./fork.ts";
import { gcCommand, type GcFlags } from "./gc.ts";
import { lossTryCommand, type LossTryOptions } from "./loss_try.ts";
import { followLogs, type LogsFlags, showLogs } from "./logs.ts";
import { type LossShowOptions, showLoss } from "./loss.ts";
import { completed, DEFAULT_HOME, print } from "./output.ts";
import { printPlan } from "./plan.ts";
import { testReward } from "./reward_test.ts";
import { EXIT, isBadInput } from "./exit.ts";
import { listRollouts, placeOfRound, type RolloutFlags } from "./rollouts.ts";
import { type Queued, resumeCommand, runCommand } from "./run.ts";
import { listRuns, showRun, wholeNumber } from "./runs.ts";
import { countsOf, serveCommand, type ServeFlags } from "./serve.ts";
import { signalCommand } from "./signal.ts";
import { verifyCommand } from "./verify.ts";
import { whyCommand } from "./why.ts";

const HOME_HELP = "directory of runs, checkpoints and environments";
const STORE_HELP = "PostgreSQL URL of the journal; overrides $HOLDFAST_STORE (default: a SQLite file in the home)";
const ID_HELP = "id of the new run (default: generated)";
const NOTHING = "stopped before anything was recorded: there is no run to resume";
const QUICKSTART = new URL("../configs/quickstart.yaml", import.meta.url);

type Global = { home: string; store?: string; id?: string };
type Flags = Record<string, string | boolean | undefined>;
type DetachFlags = { detach?: boolean; queue?: string; priority?: number; needs?: string[] };

const whole = (name: string, least = 1) => (text: string) => wholeNumber(text, { name, least });

const integer = (name: string) => (text: string) => wholeNumber(text, { name, least: -Number.MAX_SAFE_INTEGER });

/** An option that may be given several times. */
const collect = (text: string, before: string[] = []) => [...before, text];

/** Where a detached run waits; undefined for one that runs here. */
function queuedOf({ detach, queue, priority, needs = [] }: DetachFlags): Queued | undefined {
  const counts = needs.length > 0 ? countsOf(needs, "--needs") : undefined;
  if (detach) return { queue: queue ?? DEFAULT_QUEUE, priority: priority ?? 0, needs: counts };
  if (queue === undefined && priority === undefined && counts === undefined) return undefined;
  throw new InvalidInputError("Cannot queue a run that starts here: --queue, --priority and --needs require --detach");
}

/** The command line, as commander reads it. */
export function program(): Command {
  const rl = new Command("rl");
  rl.description("Holdfast: durable post-training runs. Without a command, runs the quickstart.")
    .version(`holdfast ${project.version} (deno ${Deno.version.deno})`, "-V, --version", "print the version")
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
  quickstartVerb(rl);
  runVerbs(rl);
  queueVerbs(rl);
  readVerbs(rl);
  explainVerbs(rl);
  toolVerbs(rl);
  return rl;
}

/** `--id` may come before the verb, where every verb would accept it and ignore it. */
function refuseIdleId(command: Command): void {
  const { id } = command.optsWithGlobals() as Partial<Global>;
  if (id === undefined || command.parent === null || command.options.some(({ long }) => long === "--id")) return;
  const name = command.name();
  const names = command.registeredArguments.some((argument) => argument.name() === "run");
  throw new InvalidInputError(
    `Cannot use --id with '${name}' because it names a new run and '${name}' does not create one. Fix: ` +
      (names ? `${name} ${id}` : "omit it"),
    { id },
  );
}

function noSuchCommand(rl: Command, name: string): InvalidInputError {
  const near = didYouMean(name, rl.commands.map((command) => command.name()));
  return new InvalidInputError(`Cannot run '${name}' because there is no such command${near}: --help lists them`, {
    name,
  });
}

/**
 * A verb with the options of all verbs, so that they may come before or after it. `usage`: its
 * name and its arguments.
 */
function verb(parent: Command, usage: string, description: string): Command {
  const [name, ...args] = usage.split(" ");
  const command = parent.command(name!).description(description);
  for (const arg of args) command.argument(arg, ARGUMENTS[arg.replace(/[<>[\].]/g, "")]);
  return command.option("--home <dir>", HOME_HELP).option("--store <url>", STORE_HELP);
}

/** A verb that creates a run. */
function makesRun(command: Command): Command {
  return command.option("--id <id>", ID_HELP, checkRunId);
}

/** A verb with JSON output for programs. */
function reads(command: Command): Command {
  return command.option("--json", "print JSON");
}

function globals(command: Command): Global {
  const all = command.optsWithGlobals() as Global;
  const own = command.opts() as Partial<Global>;
  return {
    home: own.home ?? all.home ?? DEFAULT_HOME,
    store: own.store ?? all.store ?? storeOfEnvironment(),
    id: own.id ?? all.id,
  };
}

/** Keeps a password out of the list of processes. */
function storeOfEnvironment(): string | undefined {
  return Deno.env.get("HOLDFAST_STORE") || undefined;
}

async function withHome<T>(command: Command, work: (home: Home) => Promise<T>): Promise<T> {
  const { home: dir, store } = globals(command);
  const home = Home.open(dir, { store: store ?? null, onNotice: (text) => console.error(text) });
  try {
    return await work(home);
  } catch (error) {
    if (error instanceof EngineError) error.message = completed(error.message, home);
    throw error;
  } finally {
    await home.close();
  }
}

function queueOptions(command: Command): Command {
  return command
    .option("--detach", "queue the run for 'serve' and print its id")
    .option("--queue <name>", "with --detach: the queue to wait in (default: default)")
    .option(
      "--priority <n>",
      "with --detach: higher starts first (default: 0)",
      integer("--priority"),
    )
    .option("--needs <name=n>", "with --detach: host slots the run occupies, such as gpu=4", collect);
}

/** No command: the quickstart. */
function quickstartVerb(rl: Command): void {
  rl.allowExcessArguments().action(async (_: Flags, command: Command) => {
    const [unknown] = command.args;
    if (unknown !== undefined) throw noSuchCommand(rl, unknown);
    Deno.exitCode = await new BeforeRecording({ nothing: NOTHING }).during(async (early) => {
      const text = await Deno.readTextFile(QUICKSTART);
      const loaded = await parseConfig(text, { file: QUICKSTART.pathname });
      return await withHome(command, (home) => runCommand(home, loaded, { ...globals(command), early }));
    });
  });
}

function runVerbs(rl: Command): void {
  for (const name of ["run", "eval"]) {
    const usage = `${name} <config> [overrides...]`;
    queueOptions(
      makesRun(verb(rl, usage, name === "run" ? "start a run" : "evaluate a model with the evaluate flow")),
    )
      .action(async (file: string, overrides: string[], flags: DetachFlags, command: Command) => {
        const queued = queuedOf(flags);
        Deno.exitCode = await new BeforeRecording({ nothing: NOTHING }).during(async (early) => {
          const loaded = await loadConfig(file, { overrides, cwd: Deno.cwd() });
          const options = { ...globals(command), verb: name, queued, early };
          return await withHome(command, (home) => runCommand(home, loaded, options));
        });
      });
  }
  verb(rl, "resume [run] [overrides...]", "resume a run (default: the newest interrupted or failed run)")
    .option("--accept", "resume even if the graph has changed since the run started")
    .action(async (id: string | undefined, overrides: string[], flags: Flags, command: Command) => {
      const unnamed = id?.includes("=") === true;
      const options = { accept: flags.accept === true, overrides: unnamed ? [id!, ...overrides] : overrides };
      const nothing = "stopped before the run was resumed: nothing has changed";
      Deno.exitCode = await new BeforeRecording({ nothing }).during((early) =>
        withHome(command, (home) => resumeCommand(home, unnamed ? undefined : id, { ...options, early }))
      );
    });
  queueOptions(
    makesRun(
      verb(
        rl,
        "fork <run> [overrides...]",
        "start a new run from a closed round of an existing one, with different settings",
      ),
    ),
  )
    .requiredOption("--round <n>", "the last round to keep; 0: none; step/3: of the loop 'step'")
    .action(async (run: string, overrides: string[], flags: DetachFlags & { round: string }, command: Command) => {
      const { id } = globals(command);
      const options = { id, round: flags.round, overrides, queued: queuedOf(flags) };
      Deno.exitCode = await new BeforeRecording({ nothing: NOTHING }).during((early) =>
        withHome(command, (home) => forkCommand(home, run, { ...options, early }))
      );
    });
}

function queueVerbs(rl: Command): void {
  verb(rl, "serve", "execute queued runs until stopped; several engines can share a store")
    .option("--queue <name[=n]>", "a queue to serve; n limits its concurrent runs across all engines", collect)
    .option("--concurrency <n>", "concurrent runs on this engine", whole("--concurrency"), 1)
    .option("--slots <name=n>", "slots of this host (default: gpu, one per visible GPU)", collect)
    .option("--entry <file>", "a module with the graphs of runs that were created elsewhere", collect)
    .option("--lease-s <s>", "an engine that is silent for this long loses its runs", whole("--lease-s"), 15)
    .option("--poll-s <s>", "seconds between checks of the queues", whole("--poll-s"), 1)
    .option("--until-idle", "exit once every run this engine can execute has ended")
    .action(async (flags: ServeFlags, command: Command) => {
      Deno.exitCode = await withHome(command, (home) => serveCommand(home, flags));
    });
  reads(verb(rl, "gc [runs...]", "remove data that nothing can reach"))
    .option("--dry-run", "only report what would be removed")
    .option("--rows", "also remove rows and batches of ended runs that no checkpoint, fork or open round can reach")
    .option(
      "--logs-older-than <days>",
      "also remove older logs of all attempts but the last",
      whole("--logs-older-than", 0),
    )
    .option("--younger-than <hours>", "keep anything younger (default: 1)", whole("--younger-than", 0))
    .action((runs: string[], flags: GcFlags, command: Command) =>
      withHome(command, (home) => gcCommand(home, runs, flags))
    );
  verb(rl, "signal <run> <name> [value]", "send a run the signal that a stage awaits with ctx.signalled(name)")
    .action((id: string, name: string, text: string | undefined, _: Flags, command: Command) =>
      withHome(command, async (home) => print(await signalCommand(home, id, { name, text })))
    );
  verb(rl, "cancel <run>", "cancel a run permanently")
    .action((id: string, _: Flags, command: Command) =>
      withHome(command, async (home) => print(await cancelCommand(home, id)))
    );
}

function readVerbs(rl: Command): void {
  reads(verb(rl, "runs [text]", "list all runs, or those whose id or name contains a text"))
    .option("--status <status>", "only runs with this status")
    .action((text: string | undefined, flags: { json?: boolean; status?: string }, command: Command) =>
      withHome(command, (home) => listRuns(home, { ...flags, text }))
    );
  reads(verb(rl, "show [run]", "show the state of a run"))
    .action((id: string | undefined, flags: { json?: boolean }, command: Command) =>
      withHome(command, (home) => showRun(home, id, flags))
    );
  reads(verb(rl, "logs [run]", "show the workers' logs"))
    .option("--lines <n>", "lines to show from the end of each log", whole("--lines"), 20)
    .option("--attempt <n>", "show an earlier attempt of the run", whole("--attempt"))
    .option("--follow", "print every log from its start, then new lines until the run ends")
    .action((id: string | undefined, flags: LogsFlags, command: Command) =>
      withHome(command, (home) => flags.follow ? followLogs(home, id) : showLogs(home, id, flags))
    );
  reads(verb(rl, "rollouts [run]", "show sampled completions and their rewards"))
    .option("--round <n>", "the round to show (default: the newest); LOOP/N: of a named loop", placeOfRound)
    .option("--worst <n>", "the samples with the lowest reward", whole("--worst"))
    .option("--best <n>", "the samples with the highest reward", whole("--best"))
    .option("--limit <n>", "number of samples", whole("--limit"), 8)
    .action((id: string | undefined, { round, ...flags }: RolloutFlags, command: Command) =>
      withHome(command, (home) => listRollouts(home, id, { ...flags, ...round }))
    );
  reads(verb(rl, "checkpoints [run]", "list checkpoints")).option(
    "--verify",
    "check every file against its hash",
  )
    .action(async (id: string | undefined, flags: { json?: boolean; verify?: boolean }, command: Command) => {
      const whole = await withHome(command, (home) => listCheckpoints(home, id, flags));
      if (!whole) Deno.exitCode = EXIT.failed;
    });
  reads(verb(rl, "verify [run]", "redo a run's batches on a separate trainer and compare the results with the record"))
    .option(
      "--from <n>",
      "compare from this batch on; earlier batches are still redone",
      whole("--from"),
    )
    .action(async (id: string | undefined, flags: { json?: boolean; from?: number }, command: Command) => {
      const equal = await withHome(command, (home) => verifyCommand(home, id, flags));
      if (!equal) Deno.exitCode = EXIT.failed;
    });
}

function explainVerbs(rl: Command): void {
  reads(verb(rl, "diff <a> <b>", "show where two runs diverge"))
    .action((a: string, b: string, flags: { json?: boolean }, command: Command) =>
      withHome(command, (home) => diffCommand(home, { a, b }, flags))
    );
  reads(verb(rl, "why <run> <key>", "explain a journal entry and each time it started"))
    .action((run: string, key: string, flags: { json?: boolean }, command: Command) =>
      withHome(command, (home) => whyCommand(home, { run, key }, flags))
    );
}

function toolVerbs(rl: Command): void {
  reads(verb(rl, "plan <config> [overrides...]", "draw the graph and count its cost without starting anything"))
    .option("--format <format>", "text or mermaid", "text")
    .action(async (file: string, overrides: string[], flags: { json?: boolean; format?: string }) => {
      await printPlan(await loadConfig(file, { overrides, cwd: Deno.cwd() }), flags);
    });
  verb(rl, "fetch <config> [overrides...]", "download the model and data of a shipped configuration")
    .action(async (file: string, overrides: string[]) => print(await fetchCommand(file, { overrides })));
  const reward = rl.command("reward").description("test rewards");
  reads(verb(
    reward,
    "test <reward>",
    "score rows offline with a reward",
  ))
    .requiredOption("--data <file>", "JSONL rows; scores the completion of each, or else its answer")
    .option("-n, --count <n>", "number of rows", whole("--count"), 8)
    .option("--timeout-ms <ms>", "time limit of one call", whole("--timeout-ms"), 10_000)
    .action(
      async (
        name: string,
        flags: { json?: boolean; data: string; count: number; timeoutMs: number },
        command: Command,
      ) => {
        const { home } = globals(command);
        const good = await testReward(name, { ...flags, timeout_ms: flags.timeoutMs, home });
        if (!good) Deno.exitCode = EXIT.failed;
      },
    );
  const loss = rl.command("loss").description("inspect losses");
  reads(verb(loss, "show <algorithm> [settings...]", "print the loss of an algorithm, as the trainer computes it"))
    .option("--torch", "as a standalone Python module").option("--value", "the loss of its value model")
    .action((name: string, settings: string[], flags: LossShowOptions) => showLoss(name, settings, flags));
  reads(verb(loss, "try <algorithm> [settings...]", "run an algorithm's credit and loss on a recorded batch"))
    .requiredOption("--batch <run/round>", "the run and round whose batch to use")
    .option("--model <dir>", "take log-probabilities from this model instead of the batch")
    .action(async (name: string, settings: string[], flags: LossTryOptions, command: Command) => {
      Deno.exitCode = await withHome(command, (home) => lossTryCommand(home, { name, settings }, flags));
    });
  const data = rl.command("data").description("inspect data");
  reads(verb(data, "preview <file>", "show rows as a run reads them"))
    .option("-n, --rows <n>", "number of rows", whole("--rows"), 3)
    .action((file: string, flags: { json?: boolean; rows: number }) => previewData(file, flags));
  reads(verb(rl, "doctor", "check this machine"))
    .action(async (flags: { json?: boolean }, command: Command) => {
      if (!await doctor({ home: globals(command).home, store: globals(command).store, ...flags })) {
        Deno.exitCode = EXIT.failed;
      }
    });
  const config = rl.command("config").description("inspect configurations");
  config.command("schema").description("print the JSON Schema that editors read").action(() => printSchema());
  reads(verb(config, "show <config> [overrides...]", "print the resolved configuration"))
    .option("--origin", "show where each value comes from")
    .action((file: string, overrides: string[], flags: { json?: boolean; origin?: boolean }) =>
      showConfig(file, overrides, flags)
    );
}

/** Runs the command line; returns the exit code. */
export async function main(args: string[]): Promise<number> {
  try {
    await program().parseAsync(args, { from: "user" });
    return Deno.exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.bad_input;
    if (error instanceof ConfigError || error instanceof DataError) {
      console.error(error.message);
      return EXIT.bad_input;
    }
    if (error instanceof EngineError) {
      console.error(error.message);
      return isBadInput(error) ? EXIT.bad_input : EXIT.failed;
    }
    console.error(error); // Unexpected: the stack says where.
    return EXIT.failed;
  }
}

if (import.meta.main) Deno.exit(await main(Deno.args));
