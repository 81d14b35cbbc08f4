import { loadRows, type Row } from "../data/mod.ts";
import { InvalidInputError } from "../engine/mod.ts";
import { tryPythonReward } from "../flows/mod.ts";
import { parsePythonReward, RewardConfig, type ScoringFunction, scoringFunctions } from "../rewards/mod.ts";
import { print, printJson } from "./output.ts";

export type RewardTestOptions = { json?: boolean; data: string; count: number; timeout_ms: number; home: string };
type Tried = { row_id: string; completion: string; score: number | null; error: string | null; ms: number };

/** `reward test NAME|path.py:function`: scores rows offline and says how long it takes and what fails. True: nothing failed. */
export async function testReward(name: string, options: RewardTestOptions): Promise<boolean> {
  const table = await loadRows([{ path: options.data }]);
  const rows = Array.from({ length: Math.min(options.count, table.size) }, (_, place) => table.row(place));
  const python = parsePythonReward(name) !== null;
  const tried = python
    ? await tryPythonReward(name, { rows: rows.map(itemOf), timeout_ms: options.timeout_ms, home: options.home })
    : await tryHere(builtIn(name), rows);
  const times = tried.map(({ ms }) => ms).toSorted((a, b) => a - b);
  const at = (share: number) => times[Math.min(times.length - 1, Math.floor(share * times.length))] ?? 0;
  const failed = tried.filter(({ error }) => error !== null).length;
  const summary = {
    reward: name,
    rows: tried.length,
    failed,
    p50_ms: at(0.5),
    p99_ms: at(0.99),
    scores: histogram(tried),
  };
  if (options.json) printJson({ ...summary, results: tried });
  else {
    for (const { row_id, score, error, completion } of tried) {
      print(
        `${error === null ? String(score) : `FAILED ${error}`}  ${row_id}  ${JSON.stringify(completion.slice(0, 60))}`,
      );
    }
    print(`${tried.length} rows, ${failed} failed, p50 ${at(0.5).toFixed(1)} ms, p99 ${at(0.99).toFixed(1)} ms`);
    for (const [score, n] of Object.entries(summary.scores)) print(`score ${score}: ${"#".repeat(n)} ${n}`);
  }
  return failed === 0;
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

function builtIn(name: string): ScoringFunction {
  const parsed = RewardConfig.safeParse({ name });
  if (parsed.success) return scoringFunctions([parsed.data])[0]!;
  throw new InvalidInputError(
    `Cannot test reward '${name}' as it is none: give exact_match, gsm8k, length or path.py:function`,
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
      const score = await reward.score(sample);
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
  for (const { score } of tried) if (score !== null) counts[score.toFixed(2)] = (counts[score.toFixed(2)] ?? 0) + 1;
  return Object.fromEntries(Object.entries(counts).toSorted(([a], [b]) => Number(a) - Number(b)));
}
