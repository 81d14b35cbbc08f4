import { z } from "zod";
import { BadDataError, type Context, defineStage } from "../../engine/mod.ts";
import type { Row, RowTable } from "../../data/mod.ts";
import { Rows } from "../resources.ts";

/** A split as it was when the run began. */
export const OpenedSplit = z.strictObject({ split: z.string(), rows: z.int(), digest: z.string() });
export type OpenedSplit = z.infer<typeof OpenedSplit>;

/** Records what a split held, so that a resumed run notices a file that changed. Reads only: safe to run twice. */
export const openData = defineStage({
  name: "open_data",
  version: 1,
  input: z.strictObject({ split: z.string() }),
  output: OpenedSplit,
  run({ split }, ctx) {
    const table = tableOf(split, ctx);
    return { split, rows: table.size, digest: table.digest };
  },
});

/** The table of a split, if it still holds what it held when the run began. */
export function openedTable(opened: OpenedSplit, ctx: Context): RowTable {
  const table = tableOf(opened.split, ctx);
  if (table.digest === opened.digest) return table;
  throw new BadDataError(
    `Cannot read the '${opened.split}' rows as their files changed since the run began: ` +
      `${opened.rows} rows then (digest ${opened.digest.slice(0, 12)}), ${table.size} now (${
        table.digest.slice(0, 12)
      }). ` +
      `Put the files back, or start a new run`,
    { split: opened.split },
  );
}

/** The first `count` rows of a split, each once; null: all of them. */
export function firstRows(opened: OpenedSplit, count: number | null, ctx: Context): Row[] {
  const table = openedTable(opened, ctx);
  return Array.from({ length: Math.min(count ?? table.size, table.size) }, (_, place) => table.row(place));
}

function tableOf(split: string, ctx: Context): RowTable {
  const table = ctx.resource(Rows)[split];
  if (table) return table;
  throw new BadDataError(`Cannot read '${split}' rows as the configuration gives none: add data.${split}`, { split });
}
