import { loadConfig, type LoadedConfig } from "../configs/mod.ts";
import { checkAlgorithm, flowDefinition, refuseOthersOutput, SHIPPED } from "../flows/mod.ts";
import {
  type AnyDefinition,
  checkModelCode,
  checkRewards,
  createRun,
  type Home,
  pinnedData,
  pinnedModels,
  questionsOf,
  resolvedStart,
  rowTables,
  slotsOf,
  unbalancedLabels,
  withDirectories,
} from "../runs/mod.ts";
import { ARGUMENTS } from "./arguments.ts";
import { BeforeRecording } from "./before_recording.ts";
import { followRun } from "./followed_run.ts";
import { id } from "./options.ts";
import { tell } from "./display/output.ts";
import { leaveQueued, QUEUE_OPTIONS, type Queued, queuedOf } from "./queued.ts";
import type { Call } from "./verb.ts";

/** What is true as long as a new run is not recorded. */
export const NO_RUN = "stopped before anything was recorded: there is no run to resume";

/** A verb that starts the run of a configuration's file. */
export const STARTS = {
  arguments: { "<config>": ARGUMENTS.config, "[overrides...]": ARGUMENTS.overrides },
  options: { id, ...QUEUE_OPTIONS },
};

/**
 * Starts the run of a configuration's file. `check` throws for one that the verb does not start.
 * Returns the exit code.
 */
export async function startFile(
  { args, flags, globals }: Call<typeof STARTS.arguments, typeof STARTS.options>,
  check: (loaded: LoadedConfig) => void = () => {},
): Promise<number> {
  const queued = queuedOf(flags);
  return await new BeforeRecording({ nothing: NO_RUN }).during(async (early) => {
    const { config, overrides } = args;
    const loaded = await loadConfig(config, { overrides, cwd: Deno.cwd() });
    return await globals.withHome((home) => {
      check(loaded);
      return startRun(home, loaded, { id: globals.id, queued, early });
    });
  });
}

/** Records a run, then executes it, or queues it for `serve`. Returns the exit code. */
export async function startRun(
  home: Home,
  loaded: LoadedConfig,
  options: { id?: string; queued?: Queued; early: BeforeRecording },
): Promise<number> {
  const { early, queued } = options;
  const definition = flowDefinition(loaded.config.flow);
  if (loaded.config.flow === "prepare") refuseOthersOutput(loaded.config.output, null);
  const say = tell;
  const reporters = {
    say,
    onSetup: ({ text }: { text: string }) => say(text),
  };
  // A broken row is bad input: it is reported before anything is recorded. Rows of the hub must be
  // here for that.
  const data = await pinnedData(loaded.config, { ...reporters, download: true });
  const rows = await rowTables(data.config, { home: home.dir, say });
  // So is a model that cannot be had. A queued run may start on a different machine, which fetches
  // it then, at the commit of now.
  const pinned = await pinnedModels(data.config, { ...reporters, download: !queued });
  const { models } = pinned;
  // So is a run to start from that the configuration does not fit.
  const { origins } = loaded;
  const starting = { config: pinned.config, rows, origins };
  const { config, start } = await resolvedStart(home, definition, starting);
  const questions = [
    ...questionsOf(withDirectories(config, models), rows),
    ...await unbalancedLabels(config, rows),
  ];
  for (const question of questions) tell(`Is this intended? ${question}`);
  // So is unusable Python code. A queued run may start on a different machine, which checks it
  // then.
  if (!queued) await checkModelCode(config, { ...reporters, models });
  if (!queued) await checkAlgorithm(config, reporters);
  await checkRewards(config, { ...reporters, rows, load: !queued });
  const head = await early.record(() =>
    createRun(home, definition, {
      config,
      start,
      id: options.id,
      name: config.name,
      entry: `${SHIPPED}${config.flow}`,
      needs: queued?.needs ?? slotsOf(config),
      queue: queued?.queue,
      priority: queued?.priority,
    })
  );
  if (queued) return leaveQueued(home, head);
  return await followRun(home, {
    head,
    graph: (definition as AnyDefinition).build(config),
    config,
    rows,
  }, early);
}
