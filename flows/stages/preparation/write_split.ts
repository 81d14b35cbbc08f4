import { z } from "zod";
import {
  type ColumnType,
  inColumnOrder,
  inMessages,
  type NamedColumn,
  ParquetRows,
  preparedColumns,
  PreparedSource,
} from "../../../data/mod.ts";
import { BadDataError, defineStage, type Stage } from "../../../engine/mod.ts";
import { claimOutput, isWritten, writeOutput } from "../../files/output_directory.ts";
import { ColumnTypesRecord, InputFile, rowsOfPart, stemOf } from "../../files/prepared_part.ts";
import { Paths } from "../../resources.ts";
import { FilteredPart } from "./filter_part.ts";

const Input = z.strictObject({
  split: z.string(),
  names: z.array(z.string()).describe("All splits."),
  output: z.string(),
  parts: z.array(FilteredPart),
  types: ColumnTypesRecord,
  files: z.array(InputFile),
  inputs: z.array(PreparedSource),
});
/** @internal */
type Input = z.input<typeof Input>;

const /** @internal */ writtenSplitSchema = z.strictObject({
  split: z.string(),
  path: z.string(),
  rows: z.int(),
  bytes: z.int(),
  sha256: z.string(),
  texts_as_messages: z.int().positive().optional().describe(
    "Rows whose text prompt was written as a user's message; absent: none.",
  ),
});
/** A file of prepared rows. */
export type WrittenSplit = z.infer<typeof writtenSplitSchema>;
/** Schema of {@linkcode WrittenSplit}. */
export const WrittenSplit: typeof writtenSplitSchema = writtenSplitSchema;

/**
 * Writes the rows of a split as Parquet, one row group in memory at a time. The same rows give the
 * same bytes: a second run writes the same file.
 */
export const writeSplit: Stage<Input, WrittenSplit> = defineStage({
  name: "write_split",
  version: 1,
  input: Input,
  output: WrittenSplit,
  runs_on: "data",
  leaves: {
    areThere: ({ path, bytes }) => isWritten(path, bytes),
    identity: ({ sha256 }) => sha256,
  },
  async run({ split, names, output, parts, types, files, inputs }, ctx) {
    refuseEmpty(names, parts);
    claimOutput(output, ctx.resource(Paths).owner);
    const columns = inColumnOrder(Object.keys(types)).map((name): NamedColumn => ({
      name,
      type: types[name]!.type as ColumnType,
    }));
    let texts = 0;
    const written = await writeOutput({ dir: output, name: `${split}.parquet` }, async (file) => {
      const rows = new ParquetRows(file, columns);
      for (const part of parts) {
        if (part.split_rows[split] === undefined) continue;
        const kept = await ctx.artifacts.getJson(part.kept) as Record<string, number[]>;
        const places = new Set(kept[split]);
        const { name, input } = files[part.file]!;
        const origin = { data_source: inputs[input]!.name ?? stemOf(name), file: name, split };
        for await (const { row, characters, place } of rowsOfPart(part, ctx)) {
          if (!places.has(place)) continue;
          const messageRow = inMessages(row, types);
          if (messageRow.prompt !== row.prompt) texts++;
          await rows.add(preparedColumns(messageRow, origin), characters);
        }
        ctx.emit({ progress: { done: part.file, phase: split } });
      }
      return await rows.finish();
    });
    const as_messages = texts > 0 && { texts_as_messages: texts };
    return { split, path: `${output}/${split}.parquet`, ...written, ...as_messages };
  },
});

/** Before the first file is written. */
function refuseEmpty(names: readonly string[], parts: readonly FilteredPart[]): void {
  const empty = names.filter((name) => !parts.some((part) => part.split_rows[name]));
  if (empty.length === 0) return;
  const all = empty.length === names.length;
  const dropped: Record<string, number> = {};
  for (const [reason, count] of parts.flatMap((part) => Object.entries(part.dropped))) {
    dropped[reason] = (dropped[reason] ?? 0) + count;
  }
  const why = Object.entries(dropped).map(([reason, count]) => `${count} ${reason}`).join(", ");
  const rest = parts.length === 0
    ? "the inputs have no row that can be used"
    : why || "none was dropped";
  throw new BadDataError(
    all
      ? `Cannot write any split because no row is left (${rest}). Fix: correct the inputs or the ` +
        "limits, then start a new run"
      : `Cannot write split '${
        empty[0]
      }' because it has no row (dropped: ${rest}). Fix: give it a ` +
        "larger weight in `splits`, or leave it out, and start a new run",
    { splits: empty, dropped },
  );
}
