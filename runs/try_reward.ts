import { parse as parseYaml, YAMLParseError } from "yaml";
import { didYouMean } from "../configs/mod.ts";
import { firstRows, type RewardStyle, type Row } from "../data/mod.ts";
import { InvalidInputError } from "../engine/mod.ts";
import {
  parsePythonReward,
  RewardConfig,
  REWARDS,
  type ScoringFunction,
  scoringFunctions,
} from "../rewards/mod.ts";
import { namedConfig, namedRows } from "./named_rows.ts";
import { type TriedReward, type TriedStyle, tryPythonReward } from "./try_python_reward.ts";

/**
 * Where the rows come from (a data file, or a configuration's training rows), how many are scored,
 * and the time limit of a call. `style`: how a function in Python is called; absent: as its
 * signature says.
 */
export type RewardTestOptions = {
  data: string;
  count: number;
  timeout_ms: number;
  home: string;
  style?: RewardStyle;
};
/** What `reward test --json` prints. */
export type RewardTest = {
  reward: string;
  /** How a function in Python is called; null: it is none. */
  style: TriedStyle | null;
  rows: number;
  failed: number;
  /** Rows with nothing to grade by. */
  ungraded: number;
  /** Failed rows by reason: timeout, error, bad_return, crash, bad_answer. */
  failures: Record<string, number>;
  p50_ms: number;
  p99_ms: number;
  /** How many rows have each score. */
  scores: Record<string, number>;
  results: TriedReward[];
};

/**
 * Scores the first rows of a file with a shipped reward, a Python function or a reward model, each
 * on its own answer.
 */
export async function tryReward(name: string, options: RewardTestOptions): Promise<RewardTest> {
  const named = await namedRows(options.data, { home: options.home });
  const { table } = named.find(({ split }) => split === "train") ?? named[0]!;
  const rows = await firstRows(table, options.count);
  const { style, results } = await tryOn(rows, name, options);
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
  return { reward: name, style, ...counts, ...times_ms, scores: histogram(results), results };
}

async function tryOn(
  rows: Row[],
  name: string,
  { data, timeout_ms, style }: RewardTestOptions,
): Promise<{ style: TriedStyle | null; results: TriedReward[] }> {
  const config = await namedConfig(data) ?? {};
  if (parsePythonReward(name) !== null) {
    return await tryPythonReward(name, { rows: rows.map(itemOf), style, timeout_ms, config });
  }
  if (style !== undefined) {
    throw new InvalidInputError(
      `Cannot use --style with '${name}' because it is no function in Python. Fix: leave it out`,
      { name, style },
    );
  }
  if (!(await isDirectory(name))) {
    const reward = builtIn(name);
    if (reward.source === null) return { style: null, results: await tryHere(reward, rows) };
    const { style, process, settings } = reward;
    const limits = { timeout_ms: Math.max(timeout_ms, reward.timeout_ms), process, settings };
    const how = { rows: rows.map(itemOf), style, config, ...limits };
    return { style: null, results: (await tryPythonReward(reward.source, how)).results };
  }
  // A reward model has its own chat template.
  const asIs = rows.map((row) => ({ ...itemOf(row), prompt: row.prompt }));
  return await tryPythonReward(name, { rows: asIs, timeout_ms, config });
}

/** What a row is scored on: its completion, else its reference answer. */
function completionOf(row: Row): string {
  const { completion, answer } = row;
  if (typeof completion === "string") return completion;
  if (Array.isArray(completion)) return completion.map((message) => message.content).join("\n");
  return answer ?? "";
}

function itemOf(row: Row) {
  const prompt = typeof row.prompt === "string"
    ? row.prompt
    : row.prompt.map((message) => message.content).join("\n");
  const completion = completionOf(row);
  return {
    id: row.row_id,
    prompt,
    row_prompt: row.prompt,
    completion,
    columns: row.columns,
    ...(row.answer === undefined ? {} : { answer: row.answer }),
    token_ids: [...new TextEncoder().encode(completion)],
  };
}

async function isDirectory(path: string): Promise<boolean> {
  const found = await Deno.stat(path).catch(() => null);
  return found?.isDirectory ?? false;
}

/** A shipped reward, by its name or by an entry of `reward:` with its settings. */
function builtIn(name: string): ScoringFunction {
  const entry = name.trimStart().startsWith("{") ? entryOf(name) : { name };
  const parsed = RewardConfig.safeParse(entry);
  if (parsed.success) return scoringFunctions([parsed.data])[0]!;
  const names = [...Object.keys(REWARDS), "math", "code"];
  const { name: named } = entry as { name?: string };
  if (names.includes(String(named))) {
    const { path, message } = parsed.error.issues[0]!;
    throw new InvalidInputError(
      `Cannot test reward '${named}' because ${["its settings", ...path].join(".")}: ${message}. ` +
        `Fix: give its settings as in a configuration, '{ name: ${named}, ... }'`,
      { name },
    );
  }
  throw new InvalidInputError(
    `Cannot test reward '${name}' because there is no such reward${didYouMean(name, names)}: ` +
      `give ${names.join(", ")}, path.py:function or a reward model's directory`,
    { name },
  );
}

function entryOf(text: string): unknown {
  try {
    return parseYaml(text);
  } catch (error) {
    if (!(error instanceof YAMLParseError)) throw error;
    const [line] = error.message.split("\n");
    throw new InvalidInputError(`Cannot test reward '${text}' because it is not YAML: ${line}`, {
      name: text,
    });
  }
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
      const given = await reward.score(sample);
      const score = typeof given === "object" ? given?.score ?? null : given;
      tried.push({ ...common, score, error: null, ms: performance.now() - started });
    } catch (error) {
      const message = `error: ${error instanceof Error ? error.message : String(error)}`;
      tried.push({ ...common, score: null, error: message, ms: performance.now() - started });
    }
  }
  return tried;
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
