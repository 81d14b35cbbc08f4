import { PreferenceConfig } from "../../configs/mod.ts";
import { type RowTable, tableOf } from "../../data/mod.ts";

/** `size` pairs whose sides are told apart by their last letter. */
export function pairsOf(size: number, digest = `pairs-${size}`): RowTable {
  const rows = Array.from({ length: size }, (_, n) => ({
    row_id: `pair-${n}`,
    prompt: `say ${n}`,
    completion: `${n} good`,
    rejected: `${n} bad`,
    columns: { n },
  }));
  return tableOf(rows, digest);
}

/** Three rounds of two pairs, on a model of the fake trainer. */
export function preferenceConfig(
  model: string,
  overrides: Record<string, unknown> = {},
): PreferenceConfig {
  return PreferenceConfig.parse({
    flow: "preference",
    seed: 3,
    rounds: 3,
    pairs_per_round: 2,
    model: { path: model },
    data: { train: [{ path: "train.jsonl" }], eval: [{ path: "eval.jsonl" }] },
    algorithm: { name: "dpo" },
    trainer: { optimizer: { lr: 0.1 } },
    evaluate: { pairs: 4 },
    checkpoints: { every_rounds: 2, keep_last: 1 },
    ...overrides,
  });
}
