import { unpairedOf } from "../../algs/mod.ts";
import { type Config, type Evaluated, evaluationSets, type Flow } from "../../configs/mod.ts";
import {
  DigitsPreferences,
  digitsPreferenceTables,
  digitsTables,
  type DigitsTask,
  EVAL_PROBLEMS,
  loadRows,
  type ReadOptions,
  type TrainingSource,
} from "../../data/mod.ts";
import type { RowTables } from "../../flows/mod.ts";

/** What rows of a flow must have besides a prompt. */
const NEEDS: { [flow in Flow]?: { train: ReadOptions["needs"]; eval?: ReadOptions["needs"] } } = {
  supervised: { train: "completion" },
  preference: { train: "preference", eval: "preference" },
};

function needsOf(config: Partial<Config>): NonNullable<(typeof NEEDS)[Flow]> {
  const algorithm = config.flow === "preference" ? config.algorithm : undefined;
  if (algorithm !== undefined && unpairedOf(algorithm) !== null) {
    return { train: "unpaired", eval: "unpaired" };
  }
  return NEEDS[config.flow!] ?? { train: "prompt" };
}

type Training = { train?: TrainingSource[]; teach?: "all" | "last" };
type HeldOut = { problems?: number | null; pairs?: number | null };

function taskTables(task: DigitsTask | DigitsPreferences, config: Partial<Config>): RowTables {
  const { seed = 0, evaluate } = config as { seed?: number; evaluate?: HeldOut | null };
  const split = { seed, eval_problems: evaluate?.pairs ?? evaluate?.problems ?? EVAL_PROBLEMS };
  const pairs = DigitsPreferences.safeParse(task);
  return pairs.success
    ? digitsPreferenceTables({ ...pairs.data, ...split })
    : digitsTables({ ...(task as DigitsTask), ...split });
}

/**
 * The rows of a configuration's `task:` or `data:` block, each checked once. `home` keeps what
 * finds them again. @throws {DataError} At the first broken row.
 */
export async function rowTables(
  config: Partial<Config>,
  { home, say }: Pick<ReadOptions, "home" | "say">,
): Promise<RowTables> {
  if ("task" in config && config.task !== undefined) return taskTables(config.task, config);
  const { train = [], teach } = (config as { data?: Training }).data ?? {};
  const completion = teach === "all" ? "every_turn" : "completion";
  const sources = train.map(({ weight: _, ...source }) => source);
  const tables: RowTables = {};
  const needs = needsOf(config);
  if (train.length > 0) {
    const wanted = needs.train === "completion" ? completion : needs.train;
    tables.train = await loadRows(sources, { home, say, needs: wanted });
  }
  for (const { split, sources } of evaluationSets(config as Evaluated)) {
    if (sources.length === 0) continue;
    const completions = (config as { evaluate?: { loss?: boolean } | null }).evaluate?.loss;
    tables[split] = await loadRows(sources, {
      home,
      say,
      needs: completions ? completion : needs.eval ?? "prompt",
    });
  }
  return tables;
}
