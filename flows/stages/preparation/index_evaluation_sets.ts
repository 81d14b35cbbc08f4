import { z } from "zod";
import { Decontamination } from "../../../configs/mod.ts";
import {
  ArtifactRef,
  isHubDataset,
  loadRows,
  NgramIndex,
  rowChunks,
  sourceLabel,
  textOf,
} from "../../../data/mod.ts";
import { defineStage, type Stage } from "../../../engine/mod.ts";
import { stemOf } from "../../files/prepared_part.ts";
import { Paths } from "../../resources.ts";

const /** @internal */ evaluationIndexSchema = z.strictObject({
  index: ArtifactRef.describe("JSON: the sequences of words, each with its set."),
  sets: z.array(z.strictObject({ name: z.string(), problems: z.int(), digest: z.string() })),
});
/** What evaluation sets contain. */
export type EvaluationIndex = z.infer<typeof evaluationIndexSchema>;
/** Schema of {@linkcode EvaluationIndex}. */
export const EvaluationIndex: typeof evaluationIndexSchema = evaluationIndexSchema;

/** @internal */
type RawInput = z.input<typeof Decontamination>;

/**
 * Reads evaluation sets, and keeps the sequences of words that their prompts contain. Only reads:
 * safe to run twice.
 */
export const indexEvaluationSets: Stage<RawInput, EvaluationIndex> = defineStage({
  name: "index_evaluation_sets",
  version: 1,
  input: Decontamination,
  output: EvaluationIndex,
  async run({ ngram_words, sets }, ctx) {
    const { home } = ctx.resource(Paths);
    const index = new NgramIndex(ngram_words);
    const found = [];
    for (const { name: named, ...source } of sets) {
      const { path } = source;
      const name = named ?? (isHubDataset(path) ? sourceLabel(path) : stemOf(path));
      const table = await loadRows([{ ...source, duplicates: "skip" }], { home });
      for await (const { rows } of rowChunks(table)) {
        for (const { prompt } of rows) {
          // Problems of many sets share a system message.
          const question = typeof prompt === "string"
            ? prompt
            : prompt.filter(({ role }) => role !== "system");
          index.add(name, textOf(question));
        }
      }
      found.push({ name, problems: table.size, digest: table.digest });
    }
    return { index: await ctx.artifacts.putJson(index.record()), sets: found };
  },
});
