import { z } from "zod";
import { PreparedNeeds } from "../../../configs/mod.ts";
import { ArtifactRef, inMessages, needsTemplate } from "../../../data/mod.ts";
import { type Context, defineStage, type Stage } from "../../../engine/mod.ts";
import type { RowLength } from "../../../workers/mod.ts";
import { ColumnTypesRecord, placesIn, rowsOfPart, ThinnedPart } from "../../files/prepared_part.ts";
import { refusedRow } from "../../refused_row.ts";
import { Trainer } from "../../resources.ts";

const Input = z.strictObject({
  item: ThinnedPart,
  model_path: z.string(),
  needs: PreparedNeeds,
  types: ColumnTypesRecord,
});
/** @internal */
type Input = z.input<typeof Input>;

const /** @internal */ measuredPartSchema = ThinnedPart.extend({
  tokens: ArtifactRef.optional().describe(
    "JSON: tokens of the prompt and of the longest sequence of each row that is not left out, in " +
      "order; absent: they were not counted.",
  ),
});
/** A part, and the tokens of its rows. */
export type MeasuredPart = z.infer<typeof measuredPartSchema>;
/** Schema of {@linkcode MeasuredPart}. */
export const MeasuredPart: typeof measuredPartSchema = measuredPartSchema;

/** Counts the tokens of a part's rows, as they are written, with a model's own tokenizer. Safe to run twice. */
export const measurePart: Stage<Input, MeasuredPart> = defineStage({
  name: "measure_part",
  version: 1,
  input: Input,
  output: MeasuredPart,
  runs_on: "trainer",
  async run({ item, model_path, needs, types }, ctx) {
    const rows = [];
    const numbers: number[] = [];
    const left_out = await placesIn(item.left_out, ctx);
    for await (const { row, place } of rowsOfPart(item, ctx)) {
      if (left_out.has(place)) continue;
      const { row_id, prompt, completion, rejected, tools } = row.prompt === ""
        ? row
        : inMessages(row, types);
      rows.push({ row_id, prompt, completion, rejected, tools });
      numbers.push(row.number);
    }
    if (rows.length === 0) return item;
    const use = needs === "completion" || needs === "preference" ? needs : "prompt";
    const chat = rows.some(needsTemplate) ? { template_arguments: {} } : null;
    const request = { model_path, use, rows: await ctx.artifacts.putJson(rows), chat } as const;
    const { tokens, refused } = await ctx.resource(Trainer).measureRows(request, ctx);
    if (refused) {
      const { from } = item;
      const place = from ? { file: from.file, [from.counts]: numbers[refused.row] } : null;
      throw refusedRow(rows[refused.row]!.row_id, { why: refused.why, place });
    }
    return { ...item, tokens: await ctx.artifacts.putJson(tokens) };
  },
});

/** The tokens of a part's rows; null: they were not counted. */
export async function tokensOf(
  { tokens }: MeasuredPart,
  { artifacts }: Pick<Context, "artifacts">,
): Promise<RowLength[] | null> {
  return tokens === undefined ? null : await artifacts.getJson(tokens) as RowLength[];
}
