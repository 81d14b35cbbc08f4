/**
 * Checks rewards and the rows that they will score before a run is created: a problem with them is
 * bad input.
 */
import { z } from "zod";
import { type Config, type Evaluated, evaluationSets } from "../../configs/mod.ts";
import { RewardStyle, type Row, rowChunks } from "../../data/mod.ts";
import { InvalidInputError } from "../../engine/mod.ts";
import {
  appliesToRow,
  type Called,
  functionOf,
  labelOf,
  RewardConfig,
  rowCheck,
  unready,
} from "../../rewards/mod.ts";
import {
  ensureEnvironment,
  environmentOf,
  type OnEnvironmentProgress,
  runPython,
} from "../../workers/mod.ts";
import type { RowTables } from "../../flows/mod.ts";

type CheckRewardsOptions = {
  rows: RowTables;
  onSetup?: OnEnvironmentProgress;
  /** Ends the creation of a Python environment. */
  signal?: AbortSignal;
  /**
   * Whether functions in Python are imported; if the run waits for a different machine, that
   * machine imports them.
   */
  load?: boolean;
};

/** What is wrong with a row; does not throw. */
type Check = (row: Row) => string | null;

/**
 * Reaches every reward server, imports every reward in Python like the reward processes, and asks
 * each reward whether it can score each row.
 * @throws {InvalidInputError} If a server cannot be reached, a function cannot be imported, or a
 * row lacks what a reward needs.
 */
export async function checkRewards(
  config: Partial<Config>,
  options: CheckRewardsOptions,
): Promise<void> {
  const splits = scoredSplits(config);
  const rewards = z.array(RewardConfig).safeParse((config as { reward?: unknown }).reward);
  // A custom graph may have a different `reward`.
  if (splits.length === 0 || !rewards.success) return;
  const all = [...rewards.data, ...splits.flatMap(({ reward }) => reward ?? [])];
  if (options.load !== false) await requireReady(all);
  const needs = options.load === false
    ? new Map<RewardConfig, Called>()
    : await loaded(all, config, options);
  const generated = "task" in config && config.task !== undefined; // All of its rows are alike.
  for (const split of splits) {
    const checks = (split.reward ?? rewards.data).map((reward): Check => {
      const check = rowCheck(reward, needs.get(reward));
      return (row) => appliesToRow(reward, row) ? check(row) : null;
    });
    await checkRows(split, options.rows[split.name], { checks, generated });
  }
}

async function requireReady(rewards: RewardConfig[]): Promise<void> {
  for (const reward of rewards) {
    const found = await unready(reward);
    if (found === null) continue;
    const { why, fix } = found;
    const label = labelOf(reward);
    throw new InvalidInputError(`Cannot start because of reward ${label}: ${why}. Fix: ${fix}`, {
      reward: label,
    });
  }
}

/**
 * Rows that are scored. `from`: where a configuration names them; `fields`: where it names their
 * fields. `reward`: what scores them; absent: the run's rewards.
 */
type Split = { name: string; from: string; fields: string; reward?: RewardConfig[] };

function scoredSplits(config: Partial<Config>): Split[] {
  const evaluated = (config as Evaluated).evaluate ? evaluationSets(config as Evaluated) : [];
  const sets = evaluated.map(({ split, name, path, settings }): Split => {
    const [block, part, i = ""] = path;
    const entry = `${block}.${part}[${i}]${settings ? ".data" : ""}`;
    const from = name === null ? "data.eval" : entry;
    const fields = settings ? `${entry}[].fields` : `${entry}.fields`;
    return { name: split, from, fields, reward: settings?.reward ?? undefined };
  });
  const train = { name: "train", from: "data.train", fields: "data.train[].fields" };
  if (config.flow === "online" || config.flow === "quickstart") return [train, ...sets];
  return config.flow === "evaluate" || config.flow === "supervised" ? sets : [];
}

async function checkRows(
  { name: split, from, fields }: Split,
  table: RowTables[string] | undefined,
  { checks, generated }: { checks: Check[]; generated: boolean },
): Promise<void> {
  if (table === undefined) return;
  const size = generated ? Math.min(1, table.size) : table.size;
  const faultOf = (row: Row) =>
    checks.map((check) => check(row)).find((text) => text !== null) ?? null;
  let first: string | null = null;
  let broken = 0;
  for await (const { rows } of rowChunks(table, { to: size })) {
    const faults = rows.map((row) => ({ row, fault: faultOf(row) }))
      .filter(({ fault }) => fault !== null);
    broken += faults.length;
    for (const { row, fault } of faults) first ??= `row '${row.row_id}' of ${from}: ${fault}`;
  }
  if (first === null) return;
  throw new InvalidInputError(
    `Cannot start because ${broken} of ${size} rows cannot be scored; the first one is ` +
      `${first}. ` +
      `Fix: correct or remove them, or name the field that has it in ${fields}`,
    { split, broken },
  );
}

const Loaded = z.array(
  z.union([
    z.object({ needs: z.array(z.string()), style: RewardStyle }),
    z.object({ error: z.string() }),
  ]),
);

/** How each function in Python is called, and the columns that are its parameters. */
async function loaded(
  rewards: RewardConfig[],
  config: Partial<Config>,
  { onSetup: onProgress, signal }: CheckRewardsOptions,
): Promise<Map<RewardConfig, Called>> {
  const all = rewards.map((entry) => ({ entry, imported: functionOf(entry) }));
  const entries = all.filter(({ imported }) => imported !== null).map(({ entry }) => entry);
  if (entries.length === 0) return new Map();
  const functions = all.flatMap(({ imported }) => imported ?? []);
  for (const { source, process } of functions) {
    const unset = process.env.find((name) => Deno.env.get(name) === undefined);
    if (unset === undefined) continue;
    throw new InvalidInputError(
      `Cannot use reward '${source}' because its env names ${unset}, which is not set here. ` +
        "Fix: set it, or remove it from env",
      { source, unset },
    );
  }
  const { trainer } = config as Pick<Exclude<Config, { flow: "prepare" }>, "trainer">;
  const python = await ensureEnvironment(environmentOf(trainer), {
    user_python: trainer.python,
    onProgress,
    signal,
  });
  const input = JSON.stringify(
    functions.map(({ source, process, style = null, settings = null }) => ({
      function: source,
      process,
      style,
      settings,
    })),
  );
  const { code, stdout, stderr } = await runPython(python, {
    module: "holdfast_worker.rewards.check",
    input,
    hub_token: true, // Each reward gets what its `env` names.
    signal,
  });
  if (code !== 0) {
    throw new InvalidInputError(`Cannot import rewards with ${python}:\n${stderr.trimEnd()}`, {
      code,
    });
  }
  const found = Loaded.parse(JSON.parse(stdout));
  return new Map(entries.map((entry, i) => {
    const result = found[i]!;
    if ("needs" in result) return [entry, result];
    throw new InvalidInputError(result.error, { source: functions[i]!.source });
  }));
}
