import { didYouMean } from "../configs/mod.ts";
import { loadRows, type Row } from "../data/mod.ts";
import { InvalidInputError } from "../engine/mod.ts";
import { tryPythonReward } from "../runs/mod.ts";
import { parsePythonReward, RewardConfig, REWARDS, type ScoringFunction, scoringFunctions } from "../rewards/mod.ts";
import { fixed, print, printJson } from "./output.ts";

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
  results: Tried[];
};
/** @internal */
type Tried = { row_id: string; completion: string; score: number | null; error: string | null; ms: number };

/** `reward test NAME|path.py:function|DIRECTORY`: scores rows offline and says how long it takes and what fails. True: nothing failed. */
export async function testReward(
  name: string,
  { json, ...options }: RewardTestOptions & { json?: boolean },
): Promise<boolean> {
  const tested = await tryReward(name, options);
  const { results, rows, failed, ungraded, p50_ms, p99_ms, scores } = tested;
  if (json) printJson(tested);
  else {
    for (const one of results) print(describe(one));
    const none = ungraded === 0 ? "" : `, ${ungraded} ungraded`;
    print(`${rows} rows, ${failed} failed${none}, p50 ${p50_ms.toFixed(1)} ms, p99 ${p99_ms.toFixed(1)} ms`);
    for (const [score, n] of Object.entries(scores)) print(`score ${score}: ${"#".repeat(n)} ${n}`);
  }
  return failed === 0;
}

/** Scores the first rows of a file with a shipped reward, a Python function or a reward model, each on the answer that it teaches. */
export async function tryReward(name: string, options: RewardTestOptions): Promise<RewardTest> {
  const table = await loadRows([{ path: options.data }]);
  const rows = Array.from({ length: Math.min(options.count, table.size) }, (_, place) => table.row(place));
  const results = await tryOn(rows, name, options);
  const times = results.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(share * times.length))] ?? 0;
  const failed = results.filter(({ error }) => error !== null).length;
  const ungraded = results.filter(({ score, error }) => score === null && error === null).length;
  const counts = { rows: results.length, failed, ungraded, p50_ms: at(0.5), p99_ms: at(0.99) };
  return { reward: name, ...counts, scores: histogram(results), results };
}

async function tryOn(rows: Row[], name: string, { timeout_ms, home }: RewardTestOptions): Promise<Tried[]> {
  if (parsePythonReward(name) !== null) {
    return await tryPythonReward(name, { rows: rows.map(itemOf), timeout_ms, home });
  }
  if (!(await isDirectory(name))) return await tryHere(builtIn(name), rows);
  const asIs = rows.map((row) => ({ ...itemOf(row), prompt: row.prompt })); // A reward model has its own chat template.
  return await tryPythonReward(name, { rows: asIs, timeout_ms, home });
}

function describe({ row_id, score, error, completion }: Tried): string {
  const verdict = error !== null ? "FAILED" : score === null ? "UNGRADED" : String(score);
  const why = error === null ? [] : error.split("\n").map((line) => `  | ${line}`);
  return [`${verdict}  ${row_id}  ${JSON.stringify(completion.slice(0, 60))}`, ...why].join("\n");
}

/** What a row would be scored on: the completion it teaches, else its reference answer. */
function completionOf(row: Row): string {
  const { completion, answer } = row;
  if (typeof completion === "string") return completion;
  if (Array.isArray(completion)) return completion.map((message) => message.content).join("\n");
  return answer ?? "";
}

function itemOf(row: Row) {
  const prompt = typeof row.prompt === "string" ? row.prompt : row.prompt.map((message) => message.content).join("\n");
  return { id: row.row_id, prompt, completion: completionOf(row), row: { ...row.columns, answer: row.answer } };
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
    `Cannot test reward '${name}' as there is none of that name${didYouMean(name, names)}: ` +
      `give ${names.join(", ")}, path.py:function or a reward model's directory`,
    { name },
  );
}

async function tryHere(reward: ScoringFunction, rows: Row[]): Promise<Tried[]> {
  const tried: Tried[] = [];
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

function histogram(tried: Tried[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { score } of tried) if (score !== null) counts[fixed(score, 2)] = (counts[fixed(score, 2)] ?? 0) + 1;
  return Object.fromEntries(Object.entries(counts).toSorted(([a], [b]) => Number(a) - Number(b)));
}
