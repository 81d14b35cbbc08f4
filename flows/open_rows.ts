import type { TrainingData } from "../configs/mod.ts";
import type { z } from "zod";
import { chatOf } from "../data/mod.ts";
import type { GraphBuilder, Ref } from "../engine/mod.ts";
import type { RowUse } from "./measured_rows.ts";
import { boundRows } from "./stages/rows/bound_rows.ts";
import { checkTemplate } from "./stages/rows/check_template.ts";
import { openData, type OpenedSplit } from "./stages/rows/open_data.ts";

/** @internal */
type MixtureData = Partial<Pick<z.infer<typeof TrainingData>, "train" | "curriculum">>;

/**
 * What opening rows reads from a configuration. Generated rows have no `data` block and no long
 * prompts.
 */
export type RowsConfig = {
  data?: Pick<z.infer<typeof TrainingData>, "prompt_tokens_max" | "on_long_prompt"> & MixtureData;
  sampler?: { max_model_len: number | null };
  /** With `chatSettings`, if the model has them. */
  model?: object;
};

/**
 * Opens a split and checks before anything is generated from its rows: their lengths, and that the
 * chat template writes what they have.
 */
export function openRows(
  g: GraphBuilder,
  { data, sampler, model }: RowsConfig,
  { split, use, model_path }: { split: string; use: RowUse; model_path: Ref<string> | string },
): Ref<OpenedSplit> {
  const opened = g.stage(openData, { split, ...chatOf(model) });
  if (data === undefined) return opened;
  const { prompt_tokens_max, on_long_prompt } = data;
  if (on_long_prompt === "unchecked") {
    return g.stage(checkTemplate, { data: opened, use, model_path });
  }
  const sequence_tokens_max = use === "prompt" ? sampler?.max_model_len ?? null : null;
  return g.stage(boundRows, {
    data: opened,
    use,
    model_path,
    sequence_tokens_max,
    prompt_tokens_max,
    on_long_prompt,
  });
}
