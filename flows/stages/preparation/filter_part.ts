import { z } from "zod";
import { LengthLimits } from "../../../configs/mod.ts";
import {
  ArtifactRef,
  NgramIndex,
  type NgramRecord,
  type PreparedRow,
  PreparedSource,
  type Prompt,
  splitOf,
  textOf,
  textsOf,
} from "../../../data/mod.ts";
import { type Context, defineStage, type Stage } from "../../../engine/mod.ts";
import type { RowLength } from "../../../workers/mod.ts";
import {
  Dropped,
  DroppedRow,
  type DropReason,
  Drops,
  InputFile,
  placesIn,
  rowsOfPart,
} from "../../files/prepared_part.ts";
import { MeasuredPart, tokensOf } from "./measure_part.ts";

const Input = z.strictObject({
  item: MeasuredPart,
  files: z.array(InputFile),
  inputs: z.array(PreparedSource),
  lengths: LengthLimits,
  index: ArtifactRef.nullable().describe("What evaluation sets contain; null: not compared."),
  seed: z.int(),
  splits: z.record(z.string(), z.number()),
});
type Input = z.output<typeof Input>;
/** @internal */
type RawInput = z.input<typeof Input>;

const /** @internal */ filteredPartSchema = z.strictObject({
  file: z.int(),
  rows: ArtifactRef,
  kept: ArtifactRef.describe("JSON: the places of the rows of each split, in order."),
  split_rows: z.record(z.string(), z.int()).describe("Rows of each split."),
  dropped: Dropped,
  contaminated: z.record(z.string(), z.int()).describe(
    "Rows by the set that they share words with.",
  ),
  named: z.array(DroppedRow),
});
/** A part whose rows are decided: dropped for a reason, or of a split. */
export type FilteredPart = z.infer<typeof filteredPartSchema>;
/** Schema of {@linkcode FilteredPart}. */
export const FilteredPart: typeof filteredPartSchema = filteredPartSchema;

/**
 * Decides every row of a part: too short, too long, contained in an evaluation set, or of a split.
 * Writes artifacts alone: safe to run twice.
 */
export const filterPart: Stage<RawInput, FilteredPart> = defineStage({
  name: "filter_part",
  version: 1,
  input: Input,
  output: FilteredPart,
  runs_on: "data",
  async run(input, ctx) {
    const { item: { file, rows, dropped: earlier, named }, seed, splits } = input;
    const { name, input: number } = input.files[file]!;
    const fixed = input.inputs[number]!.split;
    const judge = await Judge.of(input, ctx);
    const drops = new Drops();
    const kept: Record<string, number[]> = {};
    const contaminated: Record<string, number> = {};
    const left_out = await placesIn(input.item.left_out, ctx);
    for await (const { row, place } of rowsOfPart(input.item, ctx)) {
      if (left_out.has(place)) continue;
      const verdict = judge.next(row);
      if (verdict === null) {
        (kept[fixed ?? splitOf(row.row_id, { seed, splits })] ??= []).push(place);
      } else {
        const { set, ...why } = verdict;
        drops.add({ file: name, row: row.number, ...why });
        if (set !== undefined) contaminated[set] = (contaminated[set] ?? 0) + 1;
      }
    }
    return {
      file,
      rows,
      kept: await ctx.artifacts.putJson(kept),
      split_rows: Object.fromEntries(
        Object.entries(kept).map(([split, places]) => [split, places.length]),
      ),
      dropped: { ...earlier, ...drops.counts },
      contaminated,
      named: [...named, ...drops.named],
    };
  },
});

/** Why a row is dropped. `set`: the evaluation set that contains it. */
type Verdict = { reason: DropReason; because: string; set?: string };

/** A length that is limited. */
type Measure = "prompt_characters" | "sequence_characters" | "prompt_tokens" | "sequence_tokens";

/** Looks at the rows of a part, in their order. */
class Judge {
  readonly #lengths: Record<string, number | null>;
  readonly #tokens: RowLength[] | null;
  readonly #index: NgramIndex | null;
  #place = 0;

  private constructor(
    lengths: LengthLimits,
    lookups: { tokens: RowLength[] | null; index: NgramIndex | null },
  ) {
    this.#lengths = lengths;
    this.#tokens = lookups.tokens;
    this.#index = lookups.index;
  }

  static async of({ item, lengths, index }: Input, ctx: Context): Promise<Judge> {
    const record = index === null ? null : await ctx.artifacts.getJson(index) as NgramRecord;
    return new Judge(lengths, {
      tokens: await tokensOf(item, ctx),
      index: record && NgramIndex.read(record),
    });
  }

  /** What happens to the next row that was not left out; null: it stays. */
  next(row: PreparedRow): Verdict | null {
    const tokens = this.#tokens?.[this.#place++];
    return this.#length(row, tokens) ?? this.#contamination(row);
  }

  #length(row: PreparedRow, tokens: RowLength | undefined): Verdict | null {
    const measures: [Measure, () => number | undefined][] = [
      ["prompt_characters", () => charactersOf(row.prompt)],
      ["sequence_characters", () =>
        charactersOf(row.prompt) +
        Math.max(...[row.completion, row.rejected].map(charactersOf))],
      ["prompt_tokens", () => tokens?.prompt],
      ["sequence_tokens", () => tokens?.sequence],
    ];
    for (const [name, measure] of measures) {
      const [least, most] = [this.#lengths[`${name}_min`], this.#lengths[`${name}_max`]];
      const found = least === null && most === null ? undefined : measure();
      if (found === undefined) continue;
      const [what, unit] = name.split("_");
      const because = (limit: number) => `${found} ${unit} of the ${what}, the limit is ${limit}`;
      if (least != null && found < least) return { reason: "too_short", because: because(least) };
      if (most != null && found > most) return { reason: "too_long", because: because(most) };
    }
    return null;
  }

  #contamination(row: PreparedRow): Verdict | null {
    if (this.#index === null) return null;
    for (const text of textsOf(row)) {
      const found = this.#index.find(text);
      if (found === null) continue;
      const { set, ngram } = found;
      return { reason: "contaminated", because: `${set} contains "${ngram}"`, set };
    }
    return null;
  }
}

/** Characters as people count them: code points. */
function charactersOf(part: Prompt | undefined): number {
  let count = 0;
  for (const _ of textOf(part)) count++;
  return count;
}
