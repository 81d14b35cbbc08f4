import { z } from "zod";
import { type Prompt, type Row, rowChunks } from "../../../data/mod.ts";
import { defineStage, type RecordingContext } from "../../../engine/mod.ts";
import {
  measureRows,
  type PlacedRow,
  repairedSplit,
  ROWS_MEASURED,
  RowUse,
} from "../../measured_rows.ts";
import { OpenedSplit, openedTable } from "./open_data.ts";

const Input = z.strictObject({ data: OpenedSplit, use: RowUse, model_path: z.string() });

/**
 * Renders the first row of each shape, and refuses it if the model's chat template leaves out what
 * it has: for rows whose lengths nobody counts. Only reads: safe to run twice.
 */
export const checkTemplate = defineStage({
  name: "check_template",
  version: 1,
  input: Input,
  output: OpenedSplit,
  runs_on: "trainer",
  fork: { keeps: true },
  async run(unrepaired, ctx: RecordingContext) {
    const { use, model_path } = unrepaired;
    const data = await repairedSplit(unrepaired.data, ctx);
    const table = await openedTable(data, ctx);
    const seen = new Set<string>();
    for await (const { from, rows } of rowChunks(table, { rows: ROWS_MEASURED })) {
      const first: PlacedRow[] = [];
      for (const [i, row] of rows.entries()) {
        const shape = shapeOf(row, use);
        if (shape === null || seen.has(shape)) continue;
        seen.add(shape);
        first.push({ row, place: from + i });
      }
      if (first.length === 0) continue;
      await measureRows(first, { table, use, model_path, chat: data.chat }, ctx);
    }
    return data;
  },
});

/**
 * What a template sees of a row besides its texts: whether it has tools, and the roles and fields
 * of its messages. Not their order: rows of many turns would all differ. null: a text prompt, which
 * no template renders.
 */
export function shapeOf(
  { prompt, completion, rejected, tools }: Pick<
    Row,
    "prompt" | "completion" | "rejected" | "tools"
  >,
  use: RowUse,
): string | null {
  if (typeof prompt === "string") return null;
  const taught = use === "prompt"
    ? []
    : use === "completion"
    ? [completion]
    : [completion, rejected];
  return JSON.stringify([tools !== undefined, ...[prompt, ...taught].map(messagesShape)]);
}

/** Sorted, each shape of a message once; null: a text, or nothing. */
function messagesShape(part: Prompt | undefined): string[] | null {
  if (!Array.isArray(part)) return null;
  const shapes = part.map(({ role, content, more }) => {
    const fields = Object.keys(more === undefined ? {} : JSON.parse(more)).toSorted();
    return JSON.stringify([role, content === null, fields]);
  });
  return [...new Set(shapes)].toSorted();
}
