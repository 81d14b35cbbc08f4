import { PrepareConfig } from "../configs/mod.ts";
import { graph, type GraphBuilder, type Ref } from "../engine/mod.ts";
import { dropDuplicates } from "./stages/drop_duplicates.ts";
import { type EvaluationIndex, indexEvaluationSets } from "./stages/index_evaluation_sets.ts";
import { filterPart } from "./stages/filter_part.ts";
import { listInputs } from "./stages/list_inputs.ts";
import { type MeasuredPart, measurePart } from "./stages/measure_part.ts";
import { readInput } from "./stages/read_input.ts";
import { writeCard } from "./stages/write_card.ts";
import { writeSplit } from "./stages/write_split.ts";
import type { ThinnedPart } from "./prepared_part.ts";

/**
 * Data preparation: read and map every file, drop duplicates over all of them, then rows that are
 * too long or short and rows that evaluation sets contain; write each split as Parquet, and a card.
 */
export const prepare = graph("prepare", PrepareConfig, (g, config) => {
  const { inputs, output, needs, on_bad_row, deduplicate, lengths, seed, splits } = config;
  const found = g.stage(listInputs, { inputs, output });
  const compared = config.decontaminate && g.stage(indexEvaluationSets, config.decontaminate);
  const reading = { inputs, needs, on_bad_row, deduplicate };
  const files = g.map(readInput, found, reading, { id: ({ file }) => file });
  const unique = g.stage(dropDuplicates, { files, inputs, deduplicate });
  const parts = g.map(filterPart, measured(g, config, unique.field("parts")), {
    files: found,
    inputs,
    lengths,
    index: compared ? compared.field("index") : null,
    seed,
    splits,
  });
  const names = splitNames(config);
  const types = unique.field("types");
  const writing = { names, output, parts, types, files: found, inputs };
  // A node each: what a stage of the graph itself has written is checked at every resume.
  const written = names.map((split) =>
    g.stage(writeSplit, { split, ...writing }, { as: `write_split.${split}` })
  );
  return g.stage(writeCard, {
    name: config.name ?? "prepared data",
    output,
    files,
    parts,
    splits: written,
    sets: compared ? compared.field("sets") : none(g),
    recipe: recipeOf(config),
  });
});

function none(g: GraphBuilder): Ref<EvaluationIndex["sets"]> {
  return g.constant([]);
}

/** With the tokens of rows, if they are counted. */
function measured(
  g: GraphBuilder,
  { tokenizer, needs }: PrepareConfig,
  parts: Ref<ThinnedPart[]>,
): Ref<MeasuredPart[]> {
  if (tokenizer === null) return parts;
  return g.map(measurePart, parts, { model_path: tokenizer.path, needs });
}

/** The splits that are written: a split that no row can have is none. */
function splitNames({ inputs, splits }: PrepareConfig): string[] {
  const drawn = inputs.some(({ split }) => split === undefined) ? Object.keys(splits) : [];
  const fixed = inputs.flatMap(({ split }) => split ?? []);
  return [...new Set([...drawn, ...fixed])].toSorted();
}

/** What decides the data: without how worker processes are run. */
function recipeOf({ workers: _, ...recipe }: PrepareConfig): Record<string, unknown> {
  return recipe;
}
