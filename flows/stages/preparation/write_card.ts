import { z } from "zod";
import { writeAll } from "../../../data/mod.ts";
import { defineStage, type RecordingContext, sha256Hex, type Stage } from "../../../engine/mod.ts";
import { isWritten, removeUnfinished, writeOutput } from "../../files/output_directory.ts";
import { cardPage, PreparedCard, relativeRecipe } from "../../files/prepared_card.ts";
import { added } from "../../files/prepared_part.ts";
import { FilteredPart } from "./filter_part.ts";
import { ReadInput } from "./read_input.ts";
import { WrittenSplit } from "./write_split.ts";

const Input = z.strictObject({
  name: z.string(),
  output: z.string(),
  files: z.array(ReadInput),
  parts: z.array(FilteredPart),
  splits: z.array(WrittenSplit),
  sets: z.array(z.strictObject({ name: z.string(), problems: z.int(), digest: z.string() })),
  recipe: z.record(z.string(), z.unknown()),
});
type Input = z.output<typeof Input>;
/** @internal */
type RawInput = z.input<typeof Input>;

const /** @internal */ preparedDataSchema = z.strictObject({
  dir: z.string(),
  rows: PreparedCard.shape.rows,
  splits: z.array(WrittenSplit),
  card: z.strictObject({ sha256: z.string(), bytes: z.int() }),
  page_bytes: z.int(),
});
/** Where prepared data are, and how many rows were read, written and dropped. */
export type PreparedData = z.infer<typeof preparedDataSchema>;
/** Schema of {@linkcode PreparedData}. */
export const PreparedData: typeof preparedDataSchema = preparedDataSchema;

/** Of each input and reason, the card names the first rows. */
const NAMED_MAX = 3;

/**
 * Writes the card next to the data, and removes what killed engines left there. A second run writes
 * the same files.
 */
export const writeCard: Stage<RawInput, PreparedData> = defineStage({
  name: "write_card",
  version: 1,
  input: Input,
  output: PreparedData,
  leaves: {
    areThere: async ({ dir, card, page_bytes }) =>
      await isWritten(`${dir}/card.json`, card.bytes) &&
      await isWritten(`${dir}/README.md`, page_bytes),
    identity: ({ card }) => card.sha256,
  },
  async run(input, ctx: RecordingContext) {
    const { output: dir, splits } = input;
    const card = cardOf(input);
    const write = async (name: string, text: string) => {
      const bytes = new TextEncoder().encode(text);
      await writeOutput({ dir, name }, async (file) => {
        await writeAll(file, bytes);
        await file.sync();
      });
      return { sha256: sha256Hex(bytes), bytes: bytes.length };
    };
    const page = await write("README.md", cardPage(card));
    const written = await write("card.json", `${JSON.stringify(card, null, 2)}\n`);
    await ctx.owned();
    await removeUnfinished(dir);
    return { dir, rows: card.rows, splits, card: written, page_bytes: page.bytes };
  },
});

function cardOf({ name, output, files, parts, splits, sets, recipe }: Input): PreparedCard {
  const inputs = files.map(({ item, read, dropped }) => {
    const fileParts = parts.filter(({ file }) => file === item.file);
    const counts = [dropped, ...fileParts.map((part) => part.dropped)].reduce(added, {});
    const written = sum(fileParts.flatMap(({ split_rows }) => Object.values(split_rows)));
    const { bytes, sha256 } = item;
    return { file: item.name, bytes, sha256, read, written, dropped: counts };
  });
  const named = files.flatMap((file) => [
    ...file.named,
    ...parts.filter((part) => part.file === file.item.file).flatMap((part) => part.named),
  ]);
  const seen = new Map<string, number>();
  const firsts = named.filter(({ file, reason }) => {
    const key = `${reason} ${file}`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
    return seen.get(key)! <= NAMED_MAX;
  });
  return {
    format: "holdfast prepared data 1",
    name,
    rows: {
      read: sum(inputs.map(({ read }) => read)),
      written: sum(inputs.map(({ written }) => written)),
      dropped: inputs.map(({ dropped }) => dropped).reduce(added, {}),
    },
    splits: splits.map(({ path: _, ...split }) => ({ ...split, file: `${split.split}.parquet` })),
    inputs,
    evaluation_sets: sets.map((set) => ({
      ...set,
      rows_dropped: sum(parts.map(({ contaminated }) => contaminated[set.name] ?? 0)),
    })),
    dropped_rows: firsts,
    recipe: relativeRecipe(recipe, output),
  };
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, one) => all + one, 0);
}
