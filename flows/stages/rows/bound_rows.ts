import { z } from "zod";
import { rowChunks, type RowTable } from "../../../data/mod.ts";
import { BadDataError, defineStage, type RecordingContext } from "../../../engine/mod.ts";
import { measureRows, repairedSplit, ROWS_MEASURED, RowUse } from "../../measured_rows.ts";
import { OpenedSplit, openedTable } from "./open_data.ts";

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
  async run(unrepaired, ctx: RecordingContext) {
    const data = await repairedSplit(unrepaired.data, ctx);
    const input = { ...unrepaired, data };
    const { on_long_prompt } = input;
    const table = await openedTable(data, ctx);
    const { limits, long, longest } = await measured(table, input, ctx);
    if (long.length > 0 && on_long_prompt === "error") throw tooLong(long, { input, limits });
    const truncates = on_long_prompt === "truncate_left";
    if (!truncates && long.length === table.size) throw allTooLong(input, limits);
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

/** What counting found: the limits, the rows beyond them in order, and the longest prompt. */
type Measured = { limits: Limits; long: Long[]; longest: number };

/** Counts all rows of a table, some at a time: a table may be larger than memory. */
async function measured(
  table: RowTable,
  input: Input,
  ctx: RecordingContext,
): Promise<Measured> {
  const { use, model_path, data: { chat } } = input;
  const long: Long[] = [];
  let longest = 0;
  let limits: Limits = { prompt: Infinity, sequence: Infinity };
  for await (const { from, rows } of rowChunks(table, { rows: ROWS_MEASURED })) {
    const placed = rows.map((row, i) => ({ row, place: from + i }));
    const { model_tokens_max, tokens } = await measureRows(
      placed,
      { table, use, model_path, chat },
      ctx,
    );
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

function allTooLong({ data }: Input, limits: Limits): BadDataError {
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
