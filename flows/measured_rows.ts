/** What the stages share that show rows to the model's tokenizer before anything is generated. */
import { z } from "zod";
import type { Chat, Row, RowTable } from "../data/mod.ts";
import type { Failure, RecordingContext } from "../engine/mod.ts";
import { refusedRow } from "./refused_row.ts";
import { Trainer } from "./resources.ts";
import { type OpenedSplit, tableOf } from "./stages/rows/open_data.ts";

/**
 * What a row gives the model: a prompt to continue, a completion to learn, or two completions, one
 * of them better.
 */
export const RowUse = z.enum(["prompt", "completion", "preference"]);
export type RowUse = z.infer<typeof RowUse>;

/** Rows that the trainer counts with one call. */
export const ROWS_MEASURED = 8192;

/** A row, and its number in its table. */
export type PlacedRow = { row: Row; place: number };

/** `chat`: absent as in `OpenedSplit`. */
type MeasureOptions = { table: RowTable; use: RowUse; model_path: string; chat?: Chat };

/**
 * Tokens of rows, in order. `model_tokens_max`: the model's limit; null: unknown.
 * @throws {BadDataError} With its place, for a row that the model's template or tokenizer refuses.
 */
export async function measureRows(
  rows: readonly PlacedRow[],
  { table, use, model_path, chat }: MeasureOptions,
  ctx: RecordingContext,
) {
  const texts = rows.map(({ row: { row_id, prompt, completion, rejected, tools } }) => ({
    row_id,
    prompt,
    completion,
    rejected,
    tools,
  }));
  const request = { model_path, use, rows: await ctx.artifacts.putJson(texts), chat: chat ?? null };
  const { refused, ...measured } = await ctx.resource(Trainer).measureRows(request, ctx);
  if (refused === undefined) return measured;
  const { row: { row_id }, place } = rows[refused.row]!;
  throw refusedRow(row_id, {
    why: refused.why,
    place: await table.placeOf?.(place) ?? null,
    facts: { refused: place },
  });
}

/**
 * The split as it is now, if this stage or an earlier one has refused it: nothing was drawn from it
 * since, so fixing a named row lets the run resume. The note also applies to stages that check the
 * split again later.
 */
export async function repairedSplit(
  data: OpenedSplit,
  ctx: RecordingContext,
): Promise<OpenedSplit> {
  const { size: rows, digest } = tableOf(data.split, ctx);
  if (digest === data.digest) return data;
  const known = await ctx.read({ kinds: ["note/rows_repaired"], prefix: data.split });
  const failures = await ctx.read({ kinds: ["failure"], prefix: ctx.key });
  const refused = failures.some(({ key, value }) => key === ctx.key && isOfRows(value));
  if (!refused && !known.some(({ value }) => (value as { digest: string }).digest === digest)) {
    return data;
  }
  ctx.note("rows_repaired", data.split, { digest, rows });
  return { ...data, digest, rows };
}

function isOfRows(failure: unknown): boolean {
  const { error: { code, facts } } = failure as Failure;
  return code === "bad_data" && (facts.too_long ?? facts.refused) !== undefined;
}
