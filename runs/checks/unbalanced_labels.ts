import { unpairedOf } from "../../algs/mod.ts";
import type { Config } from "../../configs/mod.ts";
import { labelledCompletions, rowChunks, type RowTable } from "../../data/mod.ts";
import type { RowTables } from "../../flows/mod.ts";

/**
 * Of the weight of all desirable completions to that of all undesirable ones. Ethayarajh et al.
 * 2024, arXiv:2402.01306, as TRL 1.16 reads it.
 */
const RANGE = [1, 4 / 3] as const;
/** Weights are written with two or three digits. */
const ROUNDING = 0.01;

type Weights = { desirable_weight: number; undesirable_weight: number };

/**
 * A question, as those of `questionsOf`, where labels and weights let one side decide. A task's
 * rows are pairs, and so balanced.
 */
export async function unbalancedLabels(
  config: Partial<Config>,
  tables: RowTables,
): Promise<string[]> {
  if (config.flow !== "preference" || config.task !== undefined) return [];
  const { algorithm } = config;
  const unpaired = algorithm === undefined ? null : unpairedOf(algorithm);
  if (unpaired === null) return [];
  return [
    ...(unpaired.mismatched ? await onePrompt(tables) : []),
    ...await unbalanced(algorithm!, tables),
  ];
}

/** Splits in which no completion answers a different prompt: nothing estimates the KL. */
async function onePrompt(tables: RowTables): Promise<string[]> {
  const questions = [];
  for (const [split, table] of Object.entries(tables)) {
    const prompts = new Set<string>();
    for await (const { rows } of rowChunks(table!)) {
      for (const { prompt } of rows) prompts.add(JSON.stringify(prompt));
      if (prompts.size > 1) break;
    }
    if (prompts.size > 1) continue;
    questions.push(
      `all rows of '${split}' have the same prompt, so no completion of a different one estimates ` +
        "the KL, and rewards are compared with themselves. Fix: add other prompts, or " +
        "algorithm.loss=apo_zero_unpaired",
    );
  }
  return questions;
}

async function unbalanced(algorithm: object, { train }: RowTables): Promise<string[]> {
  if (train === undefined || !("desirable_weight" in algorithm)) return [];
  const { desirable, undesirable } = await countLabels(train);
  if (desirable === 0 || undesirable === 0) {
    const all = desirable === 0 ? "undesirable" : "desirable";
    return [
      `all ${desirable + undesirable} completions to train on are ${all}: nothing says what a ` +
      "model should do instead. Fix: add completions of the other kind",
    ];
  }
  return recommendations({ desirable, undesirable }, algorithm as Weights);
}

async function countLabels(
  table: RowTable,
): Promise<{ desirable: number; undesirable: number }> {
  const counts = { desirable: 0, undesirable: 0 };
  for await (const { rows } of rowChunks(table)) {
    for (const { label } of rows.flatMap(labelledCompletions)) {
      counts[label ? "desirable" : "undesirable"]++;
    }
  }
  return counts;
}

function recommendations(
  { desirable, undesirable }: { desirable: number; undesirable: number },
  { desirable_weight, undesirable_weight }: Weights,
): string[] {
  const [least, most] = RANGE;
  const ratio = (desirable * desirable_weight) / (undesirable * undesirable_weight);
  if (ratio >= least * (1 - ROUNDING) && ratio <= most * (1 + ROUNDING)) return [];
  const range = (low: number, high: number) => `${low.toPrecision(3)} to ${high.toPrecision(3)}`;
  const better = {
    desirable: range(...RANGE.map((bound) => bound * desirable_weight / ratio) as [number, number]),
    undesirable: range(undesirable_weight * ratio / most, undesirable_weight * ratio / least),
  };
  return [
    `${desirable} desirable completions of weight ${desirable_weight} and ${undesirable} ` +
    `undesirable ones of weight ${undesirable_weight} count as ${ratio.toPrecision(3)} to 1, but ` +
    "1 to 1.33 to 1 is recommended. Fix: " +
    `algorithm.desirable_weight from ${better.desirable}, or ` +
    `algorithm.undesirable_weight from ${better.undesirable}`,
  ];
}
