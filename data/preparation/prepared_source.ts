import { z } from "zod";
import { setting, type SettingFacts } from "../setting.ts";
import { SourceConfig } from "../source_config.ts";

/** The facts of every setting of a preparation: its output depends on all of them. */
export const PREPARED: SettingFacts = {
  numerics: false,
  fork: "free",
  resume: "refused",
};

/** A setting of a source in a further place, with facts that hold there. */
function here<Type extends z.ZodType>(schema: Type): Type {
  const again = schema.describe(schema.description ?? "");
  setting.add(again, PREPARED);
  return again as Type;
}

const { shape } = SourceConfig;
const { id, prompt, completion, chosen, rejected, margin, answer } = shape.fields.unwrap().shape;

const /** @internal */ readSourceSchema = z.strictObject({
  path: here(shape.path),
  format: here(shape.format),
  name: here(shape.name),
  repairs: here(shape.repairs),
  prompt_as: here(shape.prompt_as),
  system: here(shape.system),
  instruction: here(shape.instruction),
  fields: z.strictObject({
    id: here(id),
    prompt: here(prompt),
    completion: here(completion),
    chosen: here(chosen),
    rejected: here(rejected),
    margin: here(margin),
    answer: here(answer),
  }).prefault({}).describe("Field names of rows in a custom shape."),
});
/** Files of rows that a preparation reads from one end to the other. */
export type ReadSource = z.infer<typeof readSourceSchema>;
/** Schema of {@linkcode ReadSource}. */
export const ReadSource: typeof readSourceSchema = readSourceSchema;

/**
 * Names that say what a prepared row is, or that a source would read as its id or as a different
 * shape: a column that is kept has a different one.
 */
const TAKEN = new Set(
  ("prompt completion chosen rejected margin answer label messages data_source reward_model " +
    "extra_info responses_create_params id row_id tools").split(" "),
);
const COLUMN_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

const /** @internal */ preparedSourceSchema = readSourceSchema.extend({
  split: z.string().regex(
    /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/,
    "must be letters, digits, _ or -: it names a file",
  ).optional().describe(
    "The split that all of its rows belong to; absent: each row's is drawn.",
  ).register(setting, PREPARED),
  answer_as: z.enum(["as_is", "boxed", "number"]).default("as_is").describe(
    "boxed: the answer is what the last \\boxed{} of its field contains, and the field's whole " +
      "text the completion; number: the number of a field like `9 (apples)`. A row without one is " +
      "dropped.",
  ).register(setting, PREPARED),
  dialogue: z.enum(["as_is", "human_assistant"]).default("as_is").describe(
    "human_assistant: texts with turns `Human:` and `Assistant:` (hh-rlhf) become messages; a " +
      "row with a different text is dropped.",
  ).register(setting, PREPARED),
  ids: z.enum(["own", "content"]).default("own").describe(
    "own: a row's id, or else the hash of its content; content: always the hash.",
  ).register(setting, PREPARED),
  keep: z.record(z.string(), z.string().min(1)).superRefine((keep, ctx) => {
    for (const name of Object.keys(keep)) {
      const plain = COLUMN_NAME.test(name);
      if (plain && !TAKEN.has(name)) continue;
      const message = plain
        ? `'${name}' is a column of every prepared row, or decides how it is read; choose a ` +
          "different name"
        : `'${name}' must be a plain column name`;
      ctx.addIssue({ code: "custom", message, path: [name] });
    }
  }).default({}).describe(
    "Columns that rows keep, images too: { NAME: FIELD }; `a.b` is a nested field.",
  ).register(setting, PREPARED),
});
/** A source of a preparation, and how its rows are mapped. */
export type PreparedSource = z.infer<typeof preparedSourceSchema>;
/** Schema of {@linkcode PreparedSource}. */
export const PreparedSource: typeof preparedSourceSchema = preparedSourceSchema;
