import { z } from "zod";
import { setting } from "./setting.ts";

const /** @internal */ sourceConfigSchema = z.strictObject({
  path: z.string().min(1).describe("A JSONL file: one JSON object per line."),
  name: z.string().min(1).optional().describe(
    "Put before every row id (`name/id`), for files whose ids would collide; of an " +
      "evaluation file also what its results are " +
      "called.",
  ),
  limit: z.int().positive().optional().describe("Read only the first rows of the file.").register(
    setting,
    { unit: "rows" },
  ),
  duplicates: z.enum(["refuse", "skip"]).default("refuse").describe(
    "What to do with a second row with the same id: reject the file, or skip the row.",
  ),
  prompt_as: z.enum(["as_is", "chat"]).default("as_is").describe(
    "as_is: a text prompt is encoded as it is. chat: it becomes one user message of the " +
      "model's chat template.",
  ),
  system: z.string().optional().describe(
    "A system message placed before every prompt; turns prompts into chats.",
  ),
  instruction: z.string().optional().describe(
    "Text appended to the prompt's last user message, e.g. the answer's format.",
  ),
  fields: z.strictObject({
    id: z.string().optional().describe("Field with the row's id; `a.b` reads a nested field."),
    prompt: z.string().optional().describe("Field with the prompt: text or chat messages."),
    completion: z.string().optional().describe("Field with the completion of a supervised row."),
    chosen: z.string().optional().describe(
      "Field with the better completion of a preference: text or messages.",
    ),
    rejected: z.string().optional().describe(
      "Field with the worse completion of a preference: text or messages.",
    ),
    margin: z.string().optional().describe("Field with a preference's margin, a number."),
    answer: z.string().optional().describe(
      "Field with the reference answer that rewards compare with.",
    ),
  }).prefault({}).describe("Field names of rows in a custom shape."),
});
/** One file of rows, and how its rows are read. */
export type SourceConfig = z.infer<typeof sourceConfigSchema>;
/** Schema of {@linkcode SourceConfig}. */
export const SourceConfig: typeof sourceConfigSchema = sourceConfigSchema;
/** As people write it: without defaults. */
export type SourceInput = z.input<typeof SourceConfig>;
