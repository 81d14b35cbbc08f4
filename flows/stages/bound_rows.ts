import { z } from "zod";
import { rowChunks, type RowTable } from "../../data/mod.ts";
import {
  BadDataError,
  defineStage,
  type Failure,
  type RecordingContext,
} from "../../engine/mod.ts";
import { refusedRow } from "../refused_row.ts";
import { Trainer } from "../resources.ts";
import { OpenedSplit, openedTable, tableOf } from "./open_data.ts";

/**
 * What a row gives the model: a prompt to continue, a completion to learn, or two completions, one
 * of them better.
 */
export const RowUse = z.enum(["prompt", "completion", "preference"]);
export type RowUse = z.infer<typeof RowUse>;

const Input = z.strictObject({
  data: OpenedSplit,
  use: RowUse,
  model_path: z.string(),
  sequence_tokens_max: z.int().positive().nullable().describe(
    "The samplers' limit; null: the model's limit.",
  ),
  prompt_tokens_max: z.int().positive().nullable(),
  on_long_prompt: z.enum(["error", "drop", "truncate_left"]),
});
type Input = z.infer<typeof Input>;

/**
 * The number of a row's tokens: in its prompt, and in its longest sequence including the prompt.
 */
type RowTokens = { prompt: number; sequence: number };
type Limits = { prompt: number; sequence: number };
type Long = { place: number; row_id: string; tokens: RowTokens };

/** What `show` says about the rows of a split. */
export type BoundedRows = {
  split: string;
  rows: number;
  longest_prompt_tokens: number;
  dropped: number;
  truncated: number;
};

const ROWS_NAMED = 5;
/** Rows that the trainer counts with one call. */
const ROWS_MEASURED = 8192;

/**
 * Counts every row's tokens with the model's own tokenizer before anything is generated, and
 * decides what happens to rows that are too long. One long prompt would fail the round that draws
 * it, and fail it again at every resume. Only reads: safe to run twice.
 */
export const boundRows = defineStage({
  name: "bound_rows",
  version: 1,
  input: Input,
  output: OpenedSplit,
  runs_on: "trainer",
  fork: { keeps: true },
  async run(given, ctx: RecordingContext) {
    const data = await repaired(given.data, ctx);
    const input = { ...given, data };
    const { on_long_prompt } = input;
    const table = await openedTable(data, ctx);
    const { limits, long, longest } = await measured(table, input, ctx);
    if (long.length > 0 && on_long_prompt === "error") throw tooLong(long, { input, limits });
    const truncates = on_long_prompt === "truncate_left";
    if (!truncates && long.length === table.size) throw noneLeft(input, limits);
    const counts = { split: data.split, rows: table.size, longest_prompt_tokens: longest };
    if (long.length > 0) {
      const what = truncates ? "cut to their last" : "left out because they have more than";
      ctx.emit({
        log: `${data.split}: ${long.length} of ${table.size} prompts are ${what} ` +
          `${limits.prompt} tokens`,
      });
    }
    ctx.note("rows", data.split, {
      ...counts,
      dropped: truncates ? 0 : long.length,
      truncated: truncates ? long.length : 0,
    });
    if (truncates) return long.length === 0 ? data : { ...data, prompt_tokens_max: limits.prompt };
    if (long.length === 0) return data;
    return { ...data, dropped: await ctx.artifacts.putJson(long.map(({ place }) => place)) };
  },
});

/**
 * The split as it is now, if this stage or an earlier one has refused it: nothing was drawn from it
 * since, so fixing a named row lets the run resume. The note also applies to stages that check the
 * split again later.
 */
async function repaired(data: OpenedSplit, ctx: RecordingContext): Promise<OpenedSplit> {
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

/** What counting found: the limits, the rows beyond them in order, and the longest prompt. */
type Measured = { limits: Limits; long: Long[]; longest: number };

/** Counts all rows of a table, some at a time: a table may be larger than memory. */
async function measured(
  table: RowTable,
  input: Input,
  ctx: RecordingContext,
): Promise<Measured> {
  const { use, model_path, data: { chat } } = input;
  const trainer = ctx.resource(Trainer);
  const long: Long[] = [];
  let longest = 0;
  let limits: Limits = { prompt: Infinity, sequence: Infinity };
  for await (const { from, rows } of rowChunks(table, { rows: ROWS_MEASURED })) {
    const asked = rows.map(({ row_id, prompt, completion, rejected, tools }) => ({
      row_id,
      prompt,
      completion,
      rejected,
      tools,
    }));
    const given = { model_path, use, rows: await ctx.artifacts.putJson(asked), chat: chat ?? null };
    const { model_tokens_max, tokens, refused } = await trainer.measureRows(given, ctx);
    if (refused) throw await unusable(table, { place: from + refused.row, why: refused.why });
    limits = limitsOf(input, model_tokens_max);
    for (const [i, { prompt, sequence }] of tokens.entries()) {
      longest = Math.max(longest, prompt);
      if (prompt <= limits.prompt && sequence <= limits.sequence) continue;
      const { row_id } = rows[i]!;
      long.push({ place: from + i, row_id, tokens: { prompt, sequence } });
    }
  }
  return { limits, long, longest };
}

/** A row that the model's template or tokenizer refuses. */
async function unusable(
  table: RowTable,
  { place, why }: { place: number; why: string },
): Promise<BadDataError> {
  const [row] = await table.rows([place]);
  return refusedRow(row!.row_id, {
    why,
    place: await table.placeOf?.(place) ?? null,
    facts: { refused: place },
  });
}

/** A prompt to continue must leave room for at least one token. */
function limitsOf(
  { use, prompt_tokens_max, sequence_tokens_max }: Input,
  model: number | null,
): Limits {
  const sequence = Math.min(model ?? Infinity, sequence_tokens_max ?? Infinity);
  const room = use === "prompt" ? sequence - 1 : sequence;
  return { prompt: Math.min(prompt_tokens_max ?? Infinity, room), sequence };
}

function tooLong(long: Long[], { input, limits }: { input: Input; limits: Limits }): BadDataError {
  const { data, use } = input;
  const named = long.slice(0, ROWS_NAMED).map(({ row_id, tokens }) =>
    `'${row_id}' (${tokens.prompt}${
      tokens.sequence > tokens.prompt ? `, ${tokens.sequence} in all` : ""
    })`
  );
  if (long.length > ROWS_NAMED) named.push(`and ${long.length - ROWS_NAMED} more`);
  const ways = use === "prompt"
    ? "data.on_long_prompt: drop or truncate_left, or a higher limit if it is " +
      "data.prompt_tokens_max or sampler.max_model_len"
    : "data.on_long_prompt: drop";
  return new BadDataError(
    `Cannot use the '${data.split}' rows because ${long.length} of ${data.rows} are too long: ${
      named.join(", ")
    }. ` +
      `${limitText(limits)}. Nothing was generated. Fix: shorten or remove them, then resume; ` +
      `or start a new run with ${ways}`,
    {
      split: data.split,
      rows: long.slice(0, ROWS_NAMED).map(({ row_id }) => row_id),
      too_long: long.length,
    },
  );
}

function noneLeft({ data }: Input, limits: Limits): BadDataError {
  return new BadDataError(
    `Cannot use the '${data.split}' rows because all ${data.rows} of them are too long. ${
      limitText(limits)
    }. ` +
      "Fix: start a new run with a higher data.prompt_tokens_max, or with a model that has " +
      "a longer context",
    { split: data.split, too_long: data.rows },
  );
}

/** At least one of them is finite, or nothing would be too long. */
function limitText({ prompt, sequence }: Limits): string {
  const parts = prompt < Infinity ? [`a prompt may have ${prompt} tokens`] : [];
  if (sequence < Infinity) parts.push(`a prompt with its answer ${sequence}`);
  const text = parts.join(", ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}
