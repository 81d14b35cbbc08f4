import type { Prompt, RewardStyle } from "../../data/mod.ts";
import { InvalidInputError } from "../../engine/mod.ts";
import { processOf, type ScoringFunction } from "../../rewards/mod.ts";
import { runPython } from "../../workers/mod.ts";
import { trainerPython } from "../session/trainer_python.ts";

type TriedItem = {
  id: string;
  /** For a function a text. */
  prompt: Prompt;
  row_prompt: Prompt;
  /** For a reward model's chat template. */
  tools?: string;
  completion: string;
  columns: Record<string, unknown>;
  answer?: string;
  /** There is no tokenizer: the completion's UTF-8 bytes. */
  token_ids: number[];
};
/** One row that a reward was tried on. */
export type TriedReward = {
  row_id: string;
  completion: string;
  /** null: it failed, or there is nothing to grade by. */
  score: number | null;
  error: string | null;
  /** Numbers returned with the score. */
  metrics: Record<string, number>;
  ms: number;
};
/**
 * How a function in Python is called, by what this was recognised, and what one call scores.
 * @internal
 */
export type TriedStyle = { style: string; unit: "sample" | "group"; why: string };

/** `leftover`: what calls leave behind in their process, which is replaced for it; null: nothing. */
export type Tried = { style: TriedStyle | null; leftover: string | null; results: TriedReward[] };

/**
 * Scores items like the reward pool, with a Python reward function or a grader in one separate
 * process, or with the reward model of a directory. Rows with the same prompt are one group.
 * `style` is null for a model.
 */
export async function tryPythonReward(
  source: string,
  options:
    & { rows: TriedItem[]; style?: RewardStyle; timeout_ms: number }
    /** The configuration whose Python it is; empty: the managed one. */
    & { config: Record<string, unknown> }
    & Pick<ScoringFunction, "process" | "settings">,
): Promise<Tried> {
  const python = await trainerPython(options.config);
  const { code, stdout, stderr } = await runPython(python, {
    module: "holdfast_worker.rewards.try_function",
    args: [
      source,
      "--process",
      JSON.stringify(options.process ?? processOf({})),
      "--timeout-ms",
      String(options.timeout_ms),
      ...(options.style === undefined ? [] : ["--style", options.style]),
      ...(options.settings === undefined ? [] : ["--settings", JSON.stringify(options.settings)]),
    ],
    input: groupsOf(options.rows).map((group) => `${JSON.stringify(group)}\n`).join(""),
  });
  if (code !== 0) {
    throw new InvalidInputError(`Cannot test reward '${source}':\n${stderr.trimEnd()}`, {
      source,
      code,
    });
  }
  const lines = stdout.trim().split("\n").filter(Boolean).map((line) =>
    JSON.parse(line) as Answer | TriedStyle | Pick<Tried, "leftover">
  );
  const results = lines.flatMap((line) => "id" in line ? [line] : []);
  const tried = options.rows.map(({ id, completion }) => {
    const result = results.find((one) => one.id === id);
    const error = result?.outcome === "ok" || result?.outcome === "none"
      ? null
      : `${result?.outcome ?? "missing"}: ${result?.error ?? ""}`;
    return {
      row_id: id,
      completion,
      score: error === null ? result!.score : null,
      error,
      metrics: result?.metrics ?? {},
      ms: result?.ms ?? 0,
    };
  });
  const style = lines.find((line) => "unit" in line) ?? null;
  const leftover = lines.find((line) => "leftover" in line)?.leftover ?? null;
  return { style, leftover, results: tried };
}

/** The rows of each prompt, in the order of the first of each. */
function groupsOf(rows: TriedItem[]): TriedItem[][] {
  const groups = Map.groupBy(rows, ({ row_prompt }) => JSON.stringify(row_prompt));
  return [...groups.values()];
}

type Answer = {
  id: string;
  outcome: string;
  metrics: Record<string, number>;
  score: number | null;
  error: string | null;
  ms: number;
};
