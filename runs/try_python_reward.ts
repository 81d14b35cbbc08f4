import type { Prompt } from "../data/mod.ts";
import { InvalidInputError } from "../engine/mod.ts";
import { processOf } from "../rewards/mod.ts";
import { ensureEnvironment, environmentKind, runPython } from "../workers/mod.ts";

type TriedItem = { id: string; prompt: Prompt; completion: string; row: Record<string, unknown> };
/** One row that a reward was tried on. */
export type TriedReward = {
  row_id: string;
  completion: string;
  /** null: it failed, or there is nothing to grade by. */
  score: number | null;
  error: string | null;
  ms: number;
};

/**
 * Scores items with a Python reward function in one separate process, as the reward pool would; or
 * with the reward model of a directory.
 */
export async function tryPythonReward(
  source: string,
  options: { rows: TriedItem[]; timeout_ms: number; home: string },
): Promise<TriedReward[]> {
  const python = await ensureEnvironment(environmentKind("torch"), { home: options.home });
  const { code, stdout, stderr } = await runPython(python, {
    module: "holdfast_worker.rewards.try_function",
    args: [
      source,
      "--process",
      JSON.stringify(processOf({})),
      "--timeout-ms",
      String(options.timeout_ms),
    ],
    input: options.rows.map((row) => `${JSON.stringify(row)}\n`).join(""),
  });
  if (code !== 0) {
    throw new InvalidInputError(`Cannot test reward '${source}':\n${stderr.trimEnd()}`, {
      source,
      code,
    });
  }
  const results = stdout.trim().split("\n").filter(Boolean).map((line) =>
    JSON.parse(line) as Answer
  );
  return options.rows.map(({ id, completion }) => {
    const result = results.find((one) => one.id === id);
    const error = result?.outcome === "ok" || result?.outcome === "none"
      ? null
      : `${result?.outcome ?? "missing"}: ${result?.error ?? ""}`;
    return {
      row_id: id,
      completion,
      score: error === null ? result!.score : null,
      error,
      ms: result?.ms ?? 0,
    };
  });
}

type Answer = {
  id: string;
  outcome: string;
  score: number | null;
  error: string | null;
  ms: number;
};
