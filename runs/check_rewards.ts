/**
 * Rewards and the rows that they are to score, looked at before a run is made: what is wrong with
 * them is bad input.
 */
import { z } from "zod";
import { type Config, type Evaluated, evaluationSets } from "../configs/mod.ts";
import type { Row } from "../data/mod.ts";
import { InvalidInputError } from "../engine/mod.ts";
import { processOf, RewardConfig, rowCheck } from "../rewards/mod.ts";
import {
  ensureEnvironment,
  environmentOf,
  type OnEnvironmentProgress,
  runPython,
} from "../workers/mod.ts";
import type { RowTables } from "../flows/mod.ts";

type CheckRewardsOptions = {
  rows: RowTables;
  home: string;
  onSetup?: OnEnvironmentProgress;
  /**
   * Whether functions in Python are imported; where the run waits for a different machine, that
   * one imports them.
   */
  load?: boolean;
};

/** What is wrong with a row; it does not throw. */
type Check = (row: Row) => string | null;

/**
 * Imports every reward in Python as the reward processes would, and asks each reward whether it can
 * score each row.
 * @throws {InvalidInputError} If one cannot be imported, or a row lacks what a reward needs.
 */
export async function checkRewards(
  config: Partial<Config>,
  options: CheckRewardsOptions,
): Promise<void> {
  const splits = scoredSplits(config);
  const rewards = z.array(RewardConfig).safeParse((config as { reward?: unknown }).reward);
  // A custom graph may have a different `reward`.
  if (splits.length === 0 || !rewards.success) return;
  const needs = options.load === false
    ? new Map<RewardConfig, string[]>()
    : await loaded(rewards.data, config, options);
  const checks = rewards.data.map((reward): Check => rowCheck(reward, needs.get(reward)));
  const generated = "task" in config && config.task !== undefined; // All of its rows are alike.
  for (const split of splits) checkRows(split, options.rows[split.name], { checks, generated });
}

/** Rows that are scored. `from`: where a configuration names them; `fields`: and their fields. */
type Split = { name: string; from: string; fields: string };

function scoredSplits(config: Partial<Config>): Split[] {
  const evaluated = (config as Evaluated).evaluate ? evaluationSets(config as Evaluated) : [];
  const sets = evaluated.map(({ split, name }, i): Split => {
    const entry = `data.eval[${name === null ? "" : i}]`;
    return { name: split, from: name === null ? "data.eval" : entry, fields: `${entry}.fields` };
  });
  const train = { name: "train", from: "data.train", fields: "data.train[].fields" };
  if (config.flow === "online" || config.flow === "quickstart") return [train, ...sets];
  return config.flow === "evaluate" || config.flow === "supervised" ? sets : [];
}

function checkRows(
  { name: split, from, fields }: Split,
  table: RowTables[string] | undefined,
  { checks, generated }: { checks: Check[]; generated: boolean },
): void {
  const size = generated ? Math.min(1, table?.size ?? 0) : table?.size ?? 0;
  let first: string | null = null;
  let broken = 0;
  for (let place = 0; place < size; place++) {
    const row = table!.row(place);
    const fault = checks.map((check) => check(row)).find((text) => text !== null);
    if (fault === undefined) continue;
    first ??= `row '${row.row_id}' of ${from}: ${fault}`;
    broken++;
  }
  if (first === null) return;
  throw new InvalidInputError(
    `Cannot start because ${broken} of ${size} rows cannot be scored, the first of them ` +
      `${first}. ` +
      `Fix: correct or remove them, or name the field that has it in ${fields}`,
    { split, broken },
  );
}

const Loaded = z.array(
  z.union([z.object({ needs: z.array(z.string()) }), z.object({ error: z.string() })]),
);

/** The columns that each function in Python takes by name. */
async function loaded(
  rewards: RewardConfig[],
  config: Partial<Config>,
  { home, onSetup: onProgress }: CheckRewardsOptions,
): Promise<Map<RewardConfig, string[]>> {
  const functions = rewards.filter((reward) => reward.name === "python");
  if (functions.length === 0) return new Map();
  for (const { source, env = [] } of functions) {
    const unset = env.find((name) => Deno.env.get(name) === undefined);
    if (unset === undefined) continue;
    throw new InvalidInputError(
      `Cannot use reward '${source}' because its env names ${unset}, which is not set here. ` +
        "Fix: set it, or take it out",
      { source, unset },
    );
  }
  const { trainer } = config as Pick<Config, "trainer">;
  const python = await ensureEnvironment(environmentOf(trainer), {
    home,
    own: trainer.python,
    onProgress,
  });
  const input = JSON.stringify(
    functions.map((one) => ({ function: one.source, process: processOf(one) })),
  );
  const { code, stdout, stderr } = await runPython(python, {
    module: "holdfast_worker.rewards.check",
    input,
  });
  if (code !== 0) {
    throw new InvalidInputError(`Cannot import rewards with ${python}:\n${stderr.trimEnd()}`, {
      code,
    });
  }
  const found = Loaded.parse(JSON.parse(stdout));
  return new Map(functions.map((one, i) => {
    const result = found[i]!;
    if ("needs" in result) return [one, result.needs];
    throw new InvalidInputError(result.error, { source: one.source });
  }));
}
