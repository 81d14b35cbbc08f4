import { z } from "zod";
import {
  BadDataError,
  type Context,
  defineStage,
  type Stage,
  systemClock,
} from "../../../engine/mod.ts";
import {
  ArtifactRef,
  Chat,
  dayOf,
  type Draw,
  drawMixed,
  drawRows,
  firstRows as firstOf,
  type Picks,
  type Row,
  type RowTable,
  withoutRows,
} from "../../../data/mod.ts";
import { Rows } from "../../resources.ts";

const /** @internal */ openedSplitSchema = z.strictObject({
  split: z.string(),
  rows: z.int(),
  digest: z.string(),
  dropped: ArtifactRef.optional().describe(
    "JSON: indices of skipped rows, in order; absent: none.",
  ),
  prompt_tokens_max: z.int().positive().optional().describe(
    "Longer prompts are truncated to their last tokens; absent: no limit.",
  ),
  chat: Chat.optional().describe(
    "How chats are rendered; absent: turns end with the end-of-sequence token.",
  ),
});
/** A split at the start of the run. */
export type OpenedSplit = z.infer<typeof openedSplitSchema>;
/** Schema of {@linkcode OpenedSplit}. */
export const OpenedSplit: typeof openedSplitSchema = openedSplitSchema;

const Input = z.strictObject({ split: z.string(), chat: OpenedSplit.shape.chat });
/** @internal */
type Input = z.input<typeof Input>;

/**
 * Records what a split contained, so that a resumed run notices a changed file, and the day, which
 * is today for the run's chat templates from then on. Only reads: safe to run twice.
 */
export const openData: Stage<Input, OpenedSplit> = defineStage({
  name: "open_data",
  version: 1,
  input: Input,
  output: OpenedSplit,
  // Its input names a split, not the split's files.
  fork: { reads: Rows.name },
  run({ split, chat }, ctx) {
    const table = tableOf(split, ctx);
    const opened = { split, rows: table.size, digest: table.digest };
    // A template that writes today's date must render the same tokens at a redo on another day. This
    // output records the day.
    return chat ? { ...opened, chat: { ...chat, date: dayOf(systemClock.now()) } } : opened;
  },
});

/**
 * The table of a split without the dropped rows, if it still contains what it contained at the
 * start of the run.
 */
export async function openedTable(opened: OpenedSplit, ctx: Context): Promise<RowTable> {
  const table = tableOf(opened.split, ctx);
  if (table.digest === opened.digest) {
    if (opened.dropped === undefined) return table;
    return withoutRows(table, await ctx.artifacts.getJson(opened.dropped) as number[]);
  }
  throw new BadDataError(
    `Cannot read the '${opened.split}' rows because their files have changed since the run ` +
      `started: ${opened.rows} rows then (digest ${
        opened.digest.slice(0, 12)
      }), ${table.size} now (${table.digest.slice(0, 12)}). ` +
      `Restore the files, or start a new run`,
    { split: opened.split },
  );
}

/** The first `count` rows of a split, each once; null: all of them. */
export async function firstRows(
  opened: OpenedSplit,
  count: number | null,
  ctx: Context,
): Promise<Row[]> {
  const table = await openedTable(opened, ctx);
  return await firstOf(table, count ?? table.size);
}

/**
 * The draws [from, from + count) of a split, each with the limit to which its prompt is truncated.
 * `picks`: the source of each, if sources are mixed.
 */
export async function drawsOf(
  opened: OpenedSplit,
  { picks, ...order }: { seed: number; from: number; count: number; picks?: Picks },
  ctx: Context,
): Promise<Draw[]> {
  const table = await openedTable(opened, ctx);
  const draws = picks ? await drawMixed(table, picks, order) : await drawRows(table, order);
  return draws.map((draw) => boundedDraw(draw, opened));
}

/** A draw says how its prompt is rendered and truncated: generating it needs nothing else. */
export function boundedDraw(draw: Draw, { prompt_tokens_max, chat }: OpenedSplit): Draw {
  return {
    ...draw,
    prompt_tokens_max,
    chat,
  };
}

/** The rows of a split, read from its current files. */
export function tableOf(split: string, ctx: Context): RowTable {
  const table = ctx.resource(Rows)[split];
  if (table) return table;
  throw new BadDataError(
    `Cannot read '${split}' rows because the configuration has none: add data.${split}`,
    {
      split,
    },
  );
}
