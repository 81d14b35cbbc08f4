import { PrepareConfig } from "../configs/mod.ts";
import { graph, type Ref } from "../engine/mod.ts";
import { dropDuplicates } from "./stages/preparation/drop_duplicates.ts";
import {
  type EvaluationIndex,
  indexEvaluationSets,
} from "./stages/preparation/index_evaluation_sets.ts";
import { filterPart } from "./stages/preparation/filter_part.ts";
import { listInputs } from "./stages/preparation/list_inputs.ts";
import { type MeasuredPart, measurePart } from "./stages/preparation/measure_part.ts";
import { readInput } from "./stages/preparation/read_input.ts";
import { writeCard } from "./stages/preparation/write_card.ts";
import { writeSplit } from "./stages/preparation/write_split.ts";

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
  const [counts, some] = [config.tokenizer, unique.field("parts")];
  const types = unique.field("types");
  const measured: Ref<MeasuredPart[]> = counts === null ? some : g.map(measurePart, some, {
    model_path: counts.path,
    needs,
    types,
  });
  const parts = g.map(filterPart, measured, {
    files: found,
    inputs,
    lengths,
    index: compared ? compared.field("index") : null,
    seed,
    splits,
  });
  // A split that no row can have is none.
  const drawn = inputs.some(({ split }) => split === undefined) ? Object.keys(splits) : [];
  const names = [...new Set([...drawn, ...inputs.flatMap(({ split }) => split ?? [])])].toSorted();
  const writing = { names, output, parts, types, files: found, inputs };
  // A node each: what a stage of the graph itself has written is checked at every resume.
  const written = names.map((split) =>
    g.stage(writeSplit, { split, ...writing }, { as: `write_split.${split}` })
  );
  const { workers: _, ...recipe } = config; // What decides the data.
  return g.stage(writeCard, {
    name: config.name ?? "prepared data",
    output,
    files,
    parts,
    splits: written,
    sets: compared ? compared.field("sets") : g.constant<EvaluationIndex["sets"]>([]),
    recipe,
  });
});
