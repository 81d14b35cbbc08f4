import { parseRewards } from "../../configs/mod.ts";
import { firstRows, type RewardStyle, type Row, textOf } from "../../data/mod.ts";
import { InvalidInputError } from "../../engine/mod.ts";
import {
  RewardConfig,
  REWARDS,
  type ScoringFunction,
  scoringFunctions,
} from "../../rewards/mod.ts";
import { questionsOf } from "../checks/questions.ts";
import { namedConfig, namedRows } from "./named_rows.ts";
import {
  type Tried,
  type TriedReward,
  type TriedStyle,
  tryPythonReward,
} from "./try_python_reward.ts";

const SETS_STYLE = "style";
/** Of a reward model, which has no setting for it. */
const USUAL_TIMEOUT_MS = 10_000;

/**
 * Where the rows come from (a data file, or a configuration's training rows) and how many are
 * scored. `timeout_ms` and `style` replace the reward's own settings.
 */
export type RewardTestOptions = {
  data: string;
  count: number;
  timeout_ms?: number;
  home: string;
  style?: RewardStyle;
  /** Learns what is fetched from the hub. */
  say?: (text: string) => void;
};
/** What `reward test --json` prints. */
export type RewardTest = {
  reward: string;
  /** How a function in Python is called; null: it is none. */
  style: TriedStyle | null;
  /** What its calls leave behind in their process, a sentence; null: nothing. */
  leftover: string | null;
  rows: number;
  failed: number;
  /** Rows with nothing to grade by. */
  ungraded: number;
  /** Failed rows by reason: timeout, error, bad_return, crash, bad_answer. */
  failures: Record<string, number>;
  p50_ms: number;
  p99_ms: number;
  /** The mean of each number returned with a score. */
  metrics: Record<string, number>;
  /** How many rows have each score. */
  scores: Record<string, number>;
  results: TriedReward[];
};

/**
 * Scores the first rows of a file with a shipped reward, a Python function or a reward model, each
 * on its own answer.
 */
export async function tryReward(name: string, options: RewardTestOptions): Promise<RewardTest> {
  const named = await namedRows(options.data, options);
  const { table } = named.find(({ split }) => split === "train") ?? named[0]!;
  const rows = await firstRows(table, options.count);
  const { style, leftover, results } = await tryOn(rows, name, options);
  const times = results.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const at = (share: number) =>
    times[Math.min(times.length - 1, Math.floor(share * times.length))] ?? 0;
  const failed = results.filter(({ error }) => error !== null).length;
  const ungraded = results.filter(({ score, error }) => score === null && error === null).length;
  const failures: Record<string, number> = {};
  for (const { error } of results) {
    if (error === null) continue;
    const reason = error.split(":")[0]!;
    failures[reason] = (failures[reason] ?? 0) + 1;
  }
  const counts = { rows: results.length, failed, ungraded, failures };
  const times_ms = { p50_ms: at(0.5), p99_ms: at(0.99) };
  const numbers = { metrics: means(results), scores: histogram(results) };
  return { reward: name, style, leftover, ...counts, ...times_ms, ...numbers, results };
}

async function tryOn(
  rows: Row[],
  name: string,
  options: RewardTestOptions,
): Promise<Tried> {
  const { timeout_ms = USUAL_TIMEOUT_MS } = options;
  const config = await namedConfig(options.data) ?? {};
  // A reward model has its own chat template.
  const asIs = () =>
    rows.map((row) => ({
      ...itemOf(row),
      prompt: row.prompt,
      tools: row.tools,
    }));
  if (!(name in REWARDS) && await isDirectory(name)) {
    refuseSettings(name, { style: options.style });
    return await tryPythonReward(name, { rows: asIs(), timeout_ms, config });
  }
  const entry = entryOf(name, options);
  for (const question of questionsOf({ reward: [entry] }, {})) {
    options.say?.(`Is this intended? ${question}`);
  }
  const [reward] = scoringFunctions([entry]) as [ScoringFunction];
  if (reward.runs_on === "engine") {
    return { style: null, leftover: null, results: await tryHere(reward, rows) };
  }
  if (reward.model !== undefined) {
    const { path, ...settings } = reward.model;
    return await tryPythonReward(path, { rows: asIs(), settings, timeout_ms, config });
  }
  const how = { ...reward, rows: rows.map(itemOf), config };
  const tried = await tryPythonReward(reward.source!, how);
  // How a shipped grader is called is nobody's concern.
  return { ...tried, style: SETS_STYLE in REWARDS[entry.name].config.shape ? tried.style : null };
}

/** What a row is scored on: its completion, else its reference answer. */
function completionOf(row: Row): string {
  const { completion, answer } = row;
  return completion === undefined ? answer ?? "" : textOf(completion);
}

function itemOf(row: Row) {
  const prompt = textOf(row.prompt);
  const completion = completionOf(row);
  return {
    id: row.row_id,
    prompt,
    row_prompt: row.prompt,
    completion,
    columns: row.columns,
    answer: row.answer,
    token_ids: [...new TextEncoder().encode(completion)],
  };
}

async function isDirectory(path: string): Promise<boolean> {
  const found = await Deno.stat(path).catch(() => null);
  return found?.isDirectory ?? false;
}

/** The entry of `reward:` that a text stands for, with what else was said beside it. */
function entryOf(text: string, { style, timeout_ms }: RewardTestOptions): RewardConfig {
  const [entry, ...more] = parseRewards(text, Deno.cwd());
  if (more.length > 0) {
    throw new InvalidInputError(
      `Cannot test '${text}' because it has ${more.length + 1} rewards. Fix: test one at a time`,
      { name: text },
    );
  }
  const overrides = { style, timeout_ms };
  refuseSettings(text, overrides, REWARDS[entry!.name].config.shape);
  const defined = Object.entries(overrides).filter(([, value]) => value !== undefined);
  return RewardConfig.parse({ ...entry, ...Object.fromEntries(defined) });
}

/** @throws {InvalidInputError} If an option was given that the reward has no setting for. */
function refuseSettings(
  name: string,
  overrides: Record<string, unknown>,
  settings: Record<string, unknown> = {},
): void {
  const key = Object.keys(overrides).find((key) =>
    overrides[key] !== undefined && !(key in settings)
  );
  if (key === undefined) return;
  const why = key === SETS_STYLE ? "it is no function in Python" : "it has no such setting";
  throw new InvalidInputError(
    `Cannot use --${key.replaceAll("_", "-")} with '${name}' because ${why}. Fix: leave it out`,
    { name, [key]: overrides[key] },
  );
}

async function tryHere(reward: ScoringFunction, rows: Row[]): Promise<TriedReward[]> {
  const tried: TriedReward[] = [];
  for (const row of rows) {
    const { id, prompt, completion } = itemOf(row);
    const started = performance.now();
    const common = { row_id: id, completion };
    try {
      const sample = {
        prompt,
        completion,
        row: row.columns,
        answer: row.answer,
        tokens: 0,
        signal: new AbortController().signal,
      };
      const scored = await reward.score(sample);
      const { score, metrics = {} } = typeof scored === "object" && scored !== null
        ? scored
        : { score: scored };
      tried.push({ ...common, score, error: null, metrics, ms: performance.now() - started });
    } catch (error) {
      const message = `error: ${error instanceof Error ? error.message : String(error)}`;
      const failed = { ...common, score: null, error: message, metrics: {} };
      tried.push({ ...failed, ms: performance.now() - started });
    }
  }
  return tried;
}

/** Over the rows that have it. */
function means(tried: TriedReward[]): Record<string, number> {
  const names = [...new Set(tried.flatMap(({ metrics }) => Object.keys(metrics)))];
  return Object.fromEntries(names.map((name) => {
    const values = tried.flatMap(({ metrics }) => metrics[name] ?? []);
    return [name, values.reduce((sum, value) => sum + value, 0) / values.length];
  }));
}

function histogram(tried: TriedReward[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { score } of tried) {
    if (score !== null) counts[bin(score)] = (counts[bin(score)] ?? 0) + 1;
  }
  return Object.fromEntries(Object.entries(counts).toSorted(([a], [b]) => Number(a) - Number(b)));
}

/** To two digits; what rounds to zero has no sign. */
function bin(score: number): string {
  return score.toFixed(2).replace(/^-0\.00$/, "0.00");
}
