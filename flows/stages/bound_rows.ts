import { z } from "zod";
import type { Row } from "../../data/mod.ts";
import {
  BadDataError,
  defineStage,
  type Failure,
  type RecordingContext,
} from "../../engine/mod.ts";
import { Trainer } from "../resources.ts";
import { OpenedSplit, openedTable, tableOf } from "./open_data.ts";

/**
 * What a row gives the model: a prompt to sample after, a completion to learn, or two of which one
 * is better.
 */
export const RowUse = z.enum(["prompt", "completion", "preference"]);
export type RowUse = z.infer<typeof RowUse>;

const Input = z.strictObject({
  data: OpenedSplit,
  use: RowUse,
  model_path: z.string(),
  sequence_tokens_max: z.int().positive().nullable().describe(
    "What samplers take; null: what the model takes.",
  ),
  prompt_tokens_max: z.int().positive().nullable(),
  on_long_prompt: z.enum(["error", "drop", "truncate_left"]),
});
type Input = z.infer<typeof Input>;

/**
 * A row's tokens: of its prompt, and of the longest sequence that it makes, the prompt included.
 */
type RowTokens = { prompt: number; sequence: number };
type Limits = { prompt: number; sequence: number };
type Long = { place: number; row: Row; tokens: RowTokens };

/** What `show` says of the rows of a split. */
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
 * it, again at every resume. Reads only: safe to run twice.
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
    const { use, model_path, on_long_prompt } = input;
    const table = await openedTable(data, ctx);
    const rows = Array.from({ length: table.size }, (_, place) => table.row(place));
    const { model_tokens_max, tokens } = await measured(rows, { use, model_path, data }, ctx);
    const limits = limitsOf(input, model_tokens_max);
    const long = rows.flatMap((row, place): Long[] => {
      const { prompt, sequence } = tokens[place]!;
      return prompt > limits.prompt || sequence > limits.sequence
        ? [{ place, row, tokens: { prompt, sequence } }]
        : [];
    });
    if (long.length > 0 && on_long_prompt === "error") throw tooLong(long, { input, limits });
    const truncates = on_long_prompt === "truncate_left";
    if (!truncates && long.length === table.size) throw noneLeft(input, limits);
    const longest = tokens.reduce((most, { prompt }) => Math.max(most, prompt), 0);
    const counts = { split: data.split, rows: table.size, longest_prompt_tokens: longest };
    if (long.length > 0) {
      const what = truncates ? "cut to their last" : "left out, as they have more than";
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
 * The split as it is now, if this stage or the one before it of this split has refused it as it
 * was: nothing was drawn from it since, and repairing a named row lets the run resume. What is
 * noted holds for the stages that bound it again later.
 */
async function repaired(data: OpenedSplit, ctx: RecordingContext): Promise<OpenedSplit> {
  const { size: rows, digest } = tableOf(data.split, ctx);
  if (digest === data.digest) return data;
  const known = await ctx.read({ kinds: ["note/rows_repaired"], prefix: data.split });
  const failures = await ctx.read({ kinds: ["failure"], prefix: ctx.key });
  const refused = failures.some(({ key, value }) => key === ctx.key && isTooLong(value));
  if (!refused && !known.some(({ value }) => (value as { digest: string }).digest === digest)) {
    return data;
  }
  ctx.note("rows_repaired", data.split, { digest, rows });
  return { ...data, digest, rows };
}

function isTooLong(failure: unknown): boolean {
  const { error } = failure as Failure;
  return error.code === "bad_data" && error.facts.too_long !== undefined;
}

type Measured = Pick<Input, "use" | "model_path" | "data">;

async function measured(
  rows: Row[],
  { use, model_path, data: { chat } }: Measured,
  ctx: RecordingContext,
) {
  const asked = rows.map(({ row_id, prompt, completion, rejected }) => ({
    row_id,
    prompt,
    completion,
    rejected,
  }));
  const ref = await ctx.artifacts.putJson(asked);
  return await ctx.resource(Trainer).measureRows(
    { model_path, use, rows: ref, chat: chat ?? null },
    ctx,
  );
}

/** A prompt to sample after leaves room for one token at least. */
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
  const named = long.slice(0, ROWS_NAMED).map(({ row, tokens }) =>
    `'${row.row_id}' (${tokens.prompt}${
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
      rows: long.slice(0, ROWS_NAMED).map(({ row }) => row.row_id),
      too_long: long.length,
    },
  );
}

function noneLeft({ data }: Input, limits: Limits): BadDataError {
  return new BadDataError(
    `Cannot use the '${data.split}' rows because every one of them is too long. ${
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
