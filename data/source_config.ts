import { z } from "zod";
import { Weight } from "./sources/mixture.ts";
import { isTemplate, templateProblem } from "./rows/prompt_template.ts";
import { Repairs } from "./rows/repairs.ts";
import { setting, type SettingFacts } from "./setting.ts";

/** The facts of every block that says what rows there are. */
export const ROW_FACTS: SettingFacts = {
  numerics: false,
  fork: {
    fixed: "round_1",
    why: "the draws of the prefix came from it, and the next draws continue there",
  },
  resume: "refused",
  rows: true,
};

const /** @internal */ sourceConfigSchema = z.strictObject({
  path: z.string().min(1).describe(
    "A file of rows (.jsonl, .csv, .parquet, .arrow, also .jsonl.gz, .csv.zst, ...), a directory of " +
      "such files or of `datasets.save_to_disk`, a pattern such as data/train-*.parquet, or a data " +
      "set of the hub: hf://datasets/OWNER/NAME@REVISION?subset=NAME&split=NAME.",
  ),
  format: z.enum(["json_lines", "csv", "parquet", "arrow"]).optional().describe(
    "What the files are; absent: their names say it.",
  ).register(setting, ROW_FACTS),
  name: z.string().min(1).optional().describe(
    "Prefix of every row id (`name/id`), for files whose ids would collide; for an " +
      "evaluation file also what its results are " +
      "called.",
  ),
  limit: z.int().positive().optional().describe("Read only the first rows.").register(
    setting,
    { unit: "rows" },
  ),
  duplicates: z.enum(["refuse", "skip"]).default("refuse").describe(
    "What to do with a second row with the same id: reject the file, or skip the row.",
  ),
  repairs: Repairs.optional().describe(
    "Rows that are wrong, and what is right: gsm8k, the list that ships, or a list of " +
      "{ where: { FIELD: VALUE }, set: { FIELD: VALUE } }.",
  ).register(setting, ROW_FACTS),
  prompt_as: z.enum(["as_is", "chat"]).default("as_is").describe(
    "as_is: a text prompt is encoded as it is. chat: it becomes one user message of the " +
      "model's chat template.",
  ),
  system: z.string().optional().describe(
    "A system message placed before every prompt that has none; turns prompts into chats.",
  ),
  instruction: z.string().optional().describe(
    "Text appended to the prompt's last user message, e.g. the answer's format.",
  ),
  fields: z.strictObject({
    id: z.string().optional().describe("Field with the row's id; `a.b` reads a nested field."),
    prompt: z.string().superRefine((text, ctx) => {
      const problem = isTemplate(text) ? templateProblem(text) : null;
      if (problem !== null) ctx.addIssue({ code: "custom", message: problem });
    }).optional().describe(
      "Field with the prompt: text or chat messages. Or a text with fields in braces: {NAME}, " +
        "{a.b}, {NAME|letters} for a list of options as A. B. C. on lines; {{ and }} are braces.",
    ),
    completion: z.string().optional().describe("Field with the completion of a supervised row."),
    chosen: z.string().optional().describe(
      "Field with the better completion of a preference: text or messages.",
    ),
    rejected: z.string().optional().describe(
      "Field with the worse completion of a preference: text or messages.",
    ),
    margin: z.string().optional().describe("Field with a preference's margin, a number."),
    label: z.string().optional().describe(
      "Field that says whether a completion without a partner is desirable: true or false, 1 or 0.",
    ).register(setting, ROW_FACTS),
    answer: z.string().optional().describe(
      "Field with the reference answer that rewards compare with.",
    ),
    tools: z.string().optional().describe(
      "Field with the functions that a chat may call: a list, or its JSON text.",
    ).register(setting, ROW_FACTS),
  }).prefault({}).describe("Field names of rows in a custom shape."),
});
/** Files of rows, and how their rows are read. */
export type SourceConfig = z.infer<typeof sourceConfigSchema>;
/** Schema of {@linkcode SourceConfig}. */
export const SourceConfig: typeof sourceConfigSchema = sourceConfigSchema;
const /** @internal */ trainingSourceSchema = sourceConfigSchema.extend({
  weight: Weight.optional().describe(
    "The source's share of the draws, relative to the others': a number, or points " +
      "[[round, weight], ...] with straight lines between them. Absent: the rows of all " +
      "sources are shuffled together.",
  ).register(setting, ROW_FACTS),
});
/** A source to train on, and its share of a mixture. */
export type TrainingSource = z.infer<typeof trainingSourceSchema>;
/** Schema of {@linkcode TrainingSource}. */
export const TrainingSource: typeof trainingSourceSchema = trainingSourceSchema;
/** As users write it: without defaults. */
export type SourceInput = z.input<typeof SourceConfig>;
