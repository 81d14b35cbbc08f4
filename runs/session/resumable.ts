/**
 * What a resumed run continues with: its graph, including the settings that resumes have changed.
 */
import {
  parseOverride,
  type SettingChange,
  settingChanges,
  withSettings,
} from "../../configs/mod.ts";
import { type Graph, InvalidInputError, type RunHead } from "../../engine/mod.ts";
import { type AskedReplan, REPLAN_FIELDS, type ReplanField } from "../../workers/mod.ts";
import { childConfig, planFork } from "../forks/fork_run.ts";
import type { Home } from "../home/home.ts";
import { recordedDefinition } from "./run_graph.ts";
import { changedSettings, graphConfig } from "./settings.ts";

export type Resumable = {
  graph: Graph;
  /** With the current values of all settings. */
  config: unknown;
  /** Requested numerics, which become replans. */
  replan: AskedReplan;
  /** Requested settings that change no result. */
  settings: SettingChange[];
  /** Overrides that results depend on: a resume cannot have them. */
  refused: { path: string; from?: unknown; to?: unknown }[];
};

/**
 * Reads what `resume RUN a.b=c ...` requests. Records nothing.
 * @throws {InvalidInputError} If a text is not an override.
 * @throws {ConfigError} If there is no such setting, or its value is invalid.
 */
export async function resumable(
  home: Home,
  head: RunHead,
  { overrides = [], accept }: { overrides?: readonly string[]; accept?: boolean } = {},
): Promise<Resumable> {
  const { definition, config: recorded } = await recordedDefinition(home.store, head, { accept });
  const earlier = await changedSettings(home.store, head);
  const { replan, others } = sorted(overrides);
  const resumed = (settings: SettingChange[], refused: Resumable["refused"] = []): Resumable => ({
    graph: definition.build(graphConfig(recorded, [...earlier, ...settings])),
    config: withSettings(recorded, [...earlier, ...settings]),
    replan,
    settings,
    refused,
  });
  if (others.length === 0) return resumed([]);
  const schema = definition.config;
  const from = schema.parse(withSettings(recorded, earlier)) as Record<string, unknown>;
  const requested = await childConfig(head, { recorded: from, overrides: others, cwd: Deno.cwd() });
  const to = schema.parse({ ...requested as typeof from, ...untouched(from, others) });
  const settings: SettingChange[] = [];
  const refused: Resumable["refused"] = [];
  for (const { read_by, ...change } of settingChanges(schema, { from, to })) {
    if (read_by === null) refused.push(change);
    else settings.push({ ...change, read_by });
  }
  return resumed(settings, refused);
}

/**
 * The blocks that no override names: changes found while reading them, as in an algorithm's file,
 * were not requested.
 */
function untouched(
  config: Record<string, unknown>,
  overrides: readonly string[],
): Record<string, unknown> {
  const named = new Set(overrides.map((text) => text.split(/[.=]/)[0]!.trim()));
  return Object.fromEntries(Object.entries(config).filter(([block]) => !named.has(block)));
}

/** Separates numerics, which become replans, from all other settings. */
function sorted(overrides: readonly string[]): { replan: AskedReplan; others: string[] } {
  const replan: AskedReplan = {};
  const others: string[] = [];
  for (const text of overrides) {
    const override = parseOverride(text);
    if ("message" in override) {
      throw new InvalidInputError(`Cannot resume with '${text}' because ${override.message}`);
    }
    const field = REPLAN_FIELDS.find((name) => name === override.path.join("."));
    if (field === undefined) others.push(text);
    else replan[field as ReplanField] = override.value;
  }
  return { replan, others };
}

/**
 * The newest round from which a fork can have these overrides (0: before the first); else why no
 * fork can. Only reads.
 */
export async function forkableRound(
  home: Home,
  head: RunHead,
  overrides: readonly string[],
): Promise<{ round: number } | { refused: string }> {
  let refused = "";
  for (const round of await closedRounds(home, head)) {
    try {
      await planFork(home, head, { round, overrides, accept: true });
      return { round };
    } catch (error) {
      if (!(error instanceof Error)) throw error;
      refused ||= error.message;
    }
  }
  return { refused };
}

/** The newest closed round of the graph's last loop, and 0. */
async function closedRounds(home: Home, head: RunHead): Promise<number[]> {
  const { definition, config } = await recordedDefinition(home.store, head, { accept: true });
  const loop = definition.build(config).nodes.findLast(({ kind }) => kind === "loop")?.name;
  if (loop === undefined) return [0]; // Nothing can be forked: the fork says so.
  const rows = await home.store.read(head.id, { kinds: ["round"], prefix: `${loop}/` });
  const numbers = rows.map(({ key }) => Number(key.slice(loop.length + 1))).filter(
    Number.isInteger,
  );
  return [...new Set([Math.max(0, ...numbers), 0])];
}
