import { didYouMean } from "../configs/mod.ts";
import { loadRows, type Row } from "../data/mod.ts";
import { InvalidInputError } from "../engine/mod.ts";
import {
  parsePythonReward,
  RewardConfig,
  REWARDS,
  type ScoringFunction,
  scoringFunctions,
} from "../rewards/mod.ts";
import { type TriedReward, tryPythonReward } from "./try_python_reward.ts";

/** Where the rows come from, how many are scored, and how long one may take. */
export type RewardTestOptions = { data: string; count: number; timeout_ms: number; home: string };
/** What `reward test --json` prints. */
export type RewardTest = {
  reward: string;
  rows: number;
  failed: number;
  /** Rows with nothing to grade by. */
  ungraded: number;
  p50_ms: number;
  p99_ms: number;
  /** How many rows got each score. */
  scores: Record<string, number>;
  results: TriedReward[];
};

/**
 * Scores the first rows of a file with a shipped reward, a Python function or a reward model, each
 * on the answer that it teaches.
 */
export async function tryReward(name: string, options: RewardTestOptions): Promise<RewardTest> {
  const table = await loadRows([{ path: options.data }]);
  const rows = Array.from(
    { length: Math.min(options.count, table.size) },
    (_, place) => table.row(place),
  );
  const results = await tryOn(rows, name, options);
  const times = results.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const at = (share: number) =>
    times[Math.min(times.length - 1, Math.floor(share * times.length))] ?? 0;
  const failed = results.filter(({ error }) => error !== null).length;
  const ungraded = results.filter(({ score, error }) => score === null && error === null).length;
  const counts = { rows: results.length, failed, ungraded, p50_ms: at(0.5), p99_ms: at(0.99) };
  return { reward: name, ...counts, scores: histogram(results), results };
}

async function tryOn(
  rows: Row[],
  name: string,
  { timeout_ms, home }: RewardTestOptions,
): Promise<TriedReward[]> {
  if (parsePythonReward(name) !== null) {
    return await tryPythonReward(name, { rows: rows.map(itemOf), timeout_ms, home });
  }
  if (!(await isDirectory(name))) return await tryHere(builtIn(name), rows);
  // A reward model has its own chat template.
  const asIs = rows.map((row) => ({ ...itemOf(row), prompt: row.prompt }));
  return await tryPythonReward(name, { rows: asIs, timeout_ms, home });
}

/** What a row would be scored on: the completion it teaches, else its reference answer. */
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
  return {
    id: row.row_id,
    prompt,
    completion: completionOf(row),
    row: { ...row.columns, answer: row.answer },
  };
}

async function isDirectory(path: string): Promise<boolean> {
  const found = await Deno.stat(path).catch(() => null);
  return found?.isDirectory ?? false;
}

function builtIn(name: string): ScoringFunction {
  const parsed = RewardConfig.safeParse({ name });
  if (parsed.success) return scoringFunctions([parsed.data])[0]!;
  const names = Object.keys(REWARDS);
  throw new InvalidInputError(
    `Cannot test reward '${name}' because there is none of that name${didYouMean(name, names)}: ` +
      `give ${names.join(", ")}, path.py:function or a reward model's directory`,
    { name },
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
      const given = await reward.score(sample);
      const score = typeof given === "object" ? given?.score ?? null : given;
      tried.push({ ...common, score, error: null, ms: performance.now() - started });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
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
