import { z } from "zod";

/** Arguments that the worker itself passes when it renders a template. */
const RESERVED = [
  "conversation",
  "tokenize",
  "add_generation_prompt",
  "continue_final_message",
  "return_dict",
  "return_tensors",
];

/** How a model's chat template is used; written next to the model. */
export const chatSettings = {
  template_arguments: z.record(
    z.string().refine(
      (name) => !RESERVED.includes(name),
      "comes from the worker that renders the template; leave it out",
    ),
    z.unknown(),
  ).default({}).describe(
    "Arguments of the model's chat template, e.g. { enable_thinking: false }.",
  ),
  turn_end: z.enum(["template", "eos_token"]).default("template")
    .describe(
      "What ends the model's turn in a chat. template: what its chat template writes there. " +
        "eos_token: the tokenizer's end-of-sequence token.",
    ),
};
export type ChatSettings = {
  template_arguments?: Record<string, unknown>;
  turn_end?: "template" | "eos_token";
};

const /** @internal */ chatSchema = z.strictObject({
  template_arguments: z.record(z.string(), z.unknown()),
  date: z.string().optional().describe(
    "YYYY-MM-DD: today, for templates that write it; absent: they read the clock.",
  ),
});
/**
 * How the chats of rows are rendered; sent with the rows. Rows without this record end turns with
 * the end-of-sequence token.
 */
export type Chat = z.infer<typeof chatSchema>;
/** Schema of {@linkcode Chat}. */
export const Chat: typeof chatSchema = chatSchema;

/** The day of a moment where this engine runs, for {@linkcode Chat}; `ms` since 1970. */
export function dayOf(ms: number): string {
  const date = new Date(ms);
  const two = (number: number) => String(number).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/**
 * The record of a model's settings; empty if the end-of-sequence token ends its turns: for a created
 * model, which has no such settings, and under `turn_end: eos_token`.
 */
export function chatOf(model: object = {}): { chat?: Chat } {
  const { template_arguments = {}, turn_end } = model as ChatSettings;
  return turn_end === "template" ? { chat: { template_arguments } } : {};
}
