import type { z } from "zod";
import { readConfig, type SettingChange, settingChanges, withSettings } from "../../configs/mod.ts";
import {
  canonicalJson,
  checkJournal,
  checkRunId,
  type Graph,
  type GraphDefinition,
  hasEnded,
  InvalidInputError,
  type Outcome,
  type RunHead,
  type Store,
} from "../../engine/mod.ts";
import { importEntry } from "./entry_module.ts";
import { Home } from "../home/home.ts";
import { asPinned, pinnedData, pinnedModels } from "./hub_models.ts";
import { checkRelease } from "./release.ts";
import { createRun, executeRun, type SessionOptions } from "./session.ts";
import { changedSettings, graphConfig, recordedConfig } from "./settings.ts";
import { asStarted, resolvedStart } from "../start/start_from.ts";
import { flowDefinition, SHIPPED } from "../../flows/mod.ts";

/** A definition whose configuration is checked by its schema when it is built. */
export type AnyDefinition = Pick<GraphDefinition, "name"> & {
  config: z.ZodType;
  build(config: unknown): Graph;
};

/** What a script gives `runGraph`. */
export type RunGraphOptions<In> = SessionOptions & {
  config: In;
  /** A directory (created if missing), or an open home. */
  home: Home | string;
  /**
   * `import.meta.url + "#name"`, `name` being the export that holds the graph: how `resume` finds
   * it again.
   */
  entry: string;
  /** The run's id. With an explicit id, the same call resumes an interrupted run. */
  id?: string;
  name?: string;
};

/**
 * Runs a graph to its end: records the run and executes it, or resumes it if the home has a run
 * with this id.
 * @throws {InvalidInputError} If the run with this id has a different configuration.
 */
export async function runGraph<In, C, T>(
  definition: GraphDefinition<In, C, T>,
  options: RunGraphOptions<NoInfer<In>>,
): Promise<Outcome<T> & { run: string }> {
  const { config: written, home, entry, id, name, ...session } = options;
  if (id !== undefined) checkRunId(id);
  return await withHome(home, async (open) => {
    const known = id === undefined ? null : await open.store.head(id);
    // A script names revisions; their commits are the recorded ones, or those of now.
    const { onSetup } = session;
    if (known === null) {
      const models = await pinnedModels(written, { onSetup, download: false });
      const { config: pinned } = await pinnedData(models.config, { onSetup, download: true });
      const { config, start } = await resolvedStart(open, definition, { config: pinned });
      const head = await createRun(open, definition, { config, start, entry, id, name });
      const graph = definition.build(config);
      return { ...await executeRun(open, { head, graph }, session), run: head.id };
    }
    const recorded = recordedConfig(known);
    const config = asStarted(asPinned(written, recorded), recorded);
    if (!hasEnded(known)) await checkRelease(open.store, known, session);
    const earlier = await changedSettings(open.store, known);
    const { meant, settings } = sameConfig(known, definition, { current: config, earlier });
    const graph = definition.build(graphConfig(meant, [...earlier, ...settings]));
    const run = { head: known, graph };
    return { ...await executeRun(open, run, { ...session, settings }), run: known.id };
  });
}

/**
 * Resumes a recorded run and executes it to its end, whichever module its graph is in. For an ended
 * run, returns how it ended.
 * @throws {InvalidInputError} If there is no such run, or its module no longer has such a graph.
 */
export async function resumeRun(
  home: Home | string,
  run: string,
  options: SessionOptions = {},
): Promise<Outcome> {
  return await withHome(home, async (open) => {
    const head = await open.store.head(run);
    if (head === null) {
      throw new InvalidInputError(`Cannot find run '${run}' in ${open.dir}`, { run });
    }
    const accept = options.accept || hasEnded(head); // Then nothing continues.
    const { definition, config } = await recordedDefinition(open.store, head, { accept });
    const graph = definition.build(graphConfig(config, await changedSettings(open.store, head)));
    return await executeRun(open, { head, graph }, options);
  });
}

/** The graph definition of a run: a shipped one, or an export of the user's module. */
export async function recordedDefinition(
  store: Store,
  head: RunHead,
  options: { accept?: boolean } = {},
): Promise<{ definition: AnyDefinition; config: unknown }> {
  const recorded = recordedConfig(checkJournal(head));
  await checkRelease(store, head, options);
  if (head.entry.startsWith(SHIPPED)) {
    const config = readConfig(recorded);
    return { definition: flowDefinition(config.flow) as AnyDefinition, config };
  }
  const [module, name = ""] = head.entry.split("#");
  const loaded = await importEntry(head);
  const definition = loaded[name] as AnyDefinition | undefined;
  if (definition) return { definition, config: recorded };
  throw new InvalidInputError(
    `Cannot resume run '${head.id}' because ${module} exports no graph '${name}'`,
    {
      entry: head.entry,
    },
  );
}

async function withHome<T>(home: Home | string, work: (open: Home) => Promise<T>): Promise<T> {
  if (typeof home !== "string") return await work(home);
  const open = Home.open(home);
  try {
    return await work(open);
  } finally {
    await open.close();
  }
}

/**
 * The configuration of a recorded run, which a script passes again, and the changed settings that
 * are allowed.
 */
function sameConfig<In, C, T>(
  head: RunHead,
  { config: schema }: GraphDefinition<In, C, T>,
  { current, earlier }: { current: In; earlier: readonly SettingChange[] },
): { meant: In; settings: SettingChange[] } {
  const recorded = recordedConfig(head);
  const known = canonicalJson(schema.parse(recorded) ?? null);
  const now = schema.parse(current);
  if (canonicalJson(now ?? null) === known) return { meant: current, settings: [] };
  const changes = settingChanges(schema, {
    from: schema.parse(withSettings(recorded, earlier)),
    to: now,
  });
  const settings = changes.flatMap(({ read_by, ...change }) =>
    read_by === null ? [] : [{ ...change, read_by }]
  );
  if (settings.length === changes.length) return { meant: recorded as In, settings };
  throw new InvalidInputError(
    `Cannot continue run '${head.id}' because its configuration differs: it started with ` +
      `${head.config}, ` +
      `this call has ${canonicalJson(now ?? null)}. Fix: pass the old configuration, or a new id`,
    { run: head.id },
  );
}
