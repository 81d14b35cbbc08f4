import {
  type Graph,
  InvalidInputError,
  LostRecordError,
  type RunHead,
  type ServeOptions,
  serveQueues,
  type Store,
  type Verdict,
} from "../../engine/mod.ts";
import { placeGpus, plannedGroups } from "../../workers/mod.ts";
import type { Home } from "../home/home.ts";
import { checkRelease, thisRelease } from "./release.ts";
import { refuseOtherHome } from "../home/run_directories.ts";
import { type AnyDefinition, recordedDefinition } from "./run_graph.ts";
import { executeRun, type SessionOptions } from "./session.ts";
import { workerBlocks } from "./worker_blocks.ts";
import { changedSettings, graphConfig, recordedConfig } from "./settings.ts";
import { SHIPPED } from "../../flows/mod.ts";

/** Which queues are served, and what each run is executed with. */
export type ServeRunsOptions =
  & Pick<
    ServeOptions<Graph>,
    "queues" | "concurrency" | "slots" | "lease_ms" | "poll_ms" | "until_idle" | "clock" | "onEvent"
  >
  & {
    /** Modules in which to look for the graph of a run whose own module is not on this machine. */
    entries?: string[];
    /** What each run is executed with. */
    session?: (
      run: RunHead,
    ) => Pick<SessionOptions, "onEvent" | "onWorkers" | "onSetup" | "resources" | "preempted">;
    drain: AbortSignal;
  };

/**
 * Slots of a host that a configuration's processes hold while they run: the GPUs that this machine
 * would give them.
 */
export function slotsOf(config: Record<string, unknown>): Record<string, number> {
  const blocks = workerBlocks(config);
  if (blocks === null) return {};
  const places = Object.values(placeGpus([...plannedGroups(blocks).values()]));
  const gpu = new Set(places.flatMap((place) => place?.visible ?? [])).size;
  return gpu > 0 ? { gpu } : {};
}

/** The queue of runs without an explicit one. */
export const DEFAULT_QUEUE = "default";

/**
 * Takes queued runs from a home's store and executes them like `run`, several at once, until
 * `drain` is aborted. Takes over the runs of engines that died or froze. Settles when no process of
 * a run is left here.
 */
export async function serveRuns(home: Home, options: ServeRunsOptions): Promise<void> {
  const { entries = [], session, drain, ...serving } = options;
  const modules = await Promise.all(
    entries.map((entry) => import(entry) as Promise<Record<string, AnyDefinition>>),
  );
  const { lease_ms } = options;
  thisRelease(); // The files may be another release's by the time that a run comes.
  await serveQueues({
    ...serving,
    store: home.store,
    look: async (run) => {
      await refuseOtherHome(home, run);
      return await graphOf(home, run, modules);
    },
    execute: ({ before, head, graph }, signal) =>
      executeRun(home, { head: before, graph }, {
        ...session?.(head),
        claimed: head,
        lease_ms,
        drain: signal,
      }),
  }, drain);
}

/** The run's graph, if this engine has the same graph. */
async function graphOf(
  { store }: Home,
  run: RunHead,
  modules: Record<string, AnyDefinition>[],
): Promise<Verdict<Graph>> {
  const { definition, config } = await definitionOf(store, { run, modules });
  const graph = definition.build(graphConfig(config, await changedSettings(store, run)));
  if (graph.hash === run.graph_hash) return { graph };
  return {
    refused:
      `Cannot run '${run.id}' because its graph differs here: ${
        run.graph_hash.slice(0, 12)
      } there, ` +
      `${
        graph.hash.slice(0, 12)
      } here. Serve it with the code that created it, or 'resume ${run.id} --accept'`,
  };
}

async function definitionOf(
  store: Store,
  { run, modules }: { run: RunHead; modules: Record<string, AnyDefinition>[] },
) {
  await checkRelease(store, run, { accepting: `'resume ${run.id} --accept'` });
  try {
    return await recordedDefinition(store, run);
  } catch (error) {
    if (error instanceof LostRecordError) throw error;
    const name = run.entry.split("#")[1] ?? "";
    const provider = run.entry.startsWith(SHIPPED)
      ? undefined
      : modules.find((module) => module[name] !== undefined);
    if (provider) {
      const definition = provider[name]!;
      return { definition, config: recordedConfig(run) };
    }
    throw new InvalidInputError(
      `Cannot run '${run.id}' because its graph cannot be loaded from ${run.entry}: ${
        (error as Error).message
      }. ` +
        "Name a module that exports it with --entry",
      { run: run.id, entry: run.entry },
      { cause: error },
    );
  }
}
