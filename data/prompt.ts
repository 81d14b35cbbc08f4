import { z } from "zod";
import { Chat } from "./chat.ts";

const /** @internal */ messageSchema = z.strictObject({
  role: z.string(),
  content: z.string().nullable().describe("null where an assistant only calls tools."),
  more: z.string().optional().describe(
    "JSON of its other fields (`tool_calls`, `reasoning_content`, `name`, ...), in the file's " +
      "order: templates write objects, and artifacts sort their keys. Absent: there are none.",
  ),
});
/** One message of a chat. Rendered to text by the model's own chat template, in Python. */
export type Message = z.infer<typeof messageSchema>;
/** Schema of {@linkcode Message}. */
export const Message: typeof messageSchema = messageSchema;

const /** @internal */ promptSchema = z.union([z.string(), z.array(Message).min(1)]);
/**
 * The prompt of a model: plain text (encoded as it is) or chat messages (rendered by the chat
 * template).
 */
export type Prompt = z.infer<typeof promptSchema>;
/** Schema of {@linkcode Prompt}. */
export const Prompt: typeof promptSchema = promptSchema;

const /** @internal */ rowSchema = z.strictObject({
  row_id: z.string().min(1).describe("Stable: the row's id, or the hash of its content."),
  prompt: Prompt,
  completion: Prompt.optional().describe(
    "The completion of a supervised row; absent in prompt-only rows.",
  ),
  rejected: Prompt.optional().describe(
    "The worse completion of a preference; `completion` is the better one.",
  ),
  margin: z.number().optional().describe(
    "By how much the better completion of a preference should lead.",
  ),
  label: z.boolean().optional().describe(
    "Whether `completion` is desirable, where it has no partner to be compared with.",
  ),
  answer: z.string().optional().describe("The reference answer that rewards compare with."),
  tools: z.string().optional().describe(
    "JSON of the functions that a chat may call, for the chat template: a list of " +
      "{ type, function }.",
  ),
  columns: z.record(z.string(), z.unknown()).describe("The original row."),
});
/**
 * A normalised row of a data source. `columns` keeps every field of the original row: rewards read
 * it.
 */
export type Row = z.infer<typeof rowSchema>;
/** Schema of {@linkcode Row}. */
export const Row: typeof rowSchema = rowSchema;

const /** @internal */ drawSchema = z.strictObject({
  draw: z.int().nonnegative(),
  row: Row,
  prompt_tokens_max: z.int().positive().optional().describe(
    "The model sees only the prompt's last tokens; absent: all.",
  ),
  chat: Chat.optional().describe(
    "How a chat is rendered; absent: its turns end with the end-of-sequence token.",
  ),
});
/**
 * One draw: a prompt's position in the run's stream. Randomness is keyed by `draw`, never by
 * arrival.
 */
export type Draw = z.infer<typeof drawSchema>;
/** Schema of {@linkcode Draw}. */
export const Draw: typeof drawSchema = drawSchema;

const /** @internal */ slabSchema = z.strictObject({ id: z.string(), draws: z.array(Draw).min(1) });
/** A slab: draws generated as one closed batch. Cut by draw order, never by arrival. */
export type Slab = z.infer<typeof slabSchema>;
/** Schema of {@linkcode Slab}. */
export const Slab: typeof slabSchema = slabSchema;
