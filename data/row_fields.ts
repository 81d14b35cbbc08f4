import { z } from "zod";
import type { Message, Prompt } from "./prompt.ts";

/** What a row lacks. `field` is a path inside the row. */
export class RowProblem extends Error {
  constructor(readonly field: string | undefined, message: string) {
    super(message);
    this.name = "RowProblem";
  }
}

export type Columns = Record<string, unknown>;

// Chats carry more than role and content (names, weights, tool calls); only these two reach the
// chat template.
const ChatMessages = z.array(z.object({ role: z.string(), content: z.string() })).min(1);

/** The value of a field; `a.b` reads a nested field. */
export function read(columns: Columns, path: string): unknown {
  if (columns[path] !== undefined || !path.includes(".")) return columns[path];
  return path.split(".").reduce<unknown>(
    (part, key) => (part as Columns | null | undefined)?.[key],
    columns,
  );
}

export function readPrompt(field: string, value: unknown): Prompt {
  if (typeof value !== "string") return readChat(field, value);
  if (value === "") throw new RowProblem(field, "the prompt is empty");
  return value;
}

/**
 * A chat completion of one assistant message is its text: the prompt's chat template adds the rest.
 */
export function readCompletion(field: string, value: unknown): Prompt {
  return typeof value === "string" ? value : asCompletion(readChat(field, value));
}

export function asCompletion(messages: Message[]): Prompt {
  return messages.length === 1 && messages[0]!.role === "assistant"
    ? messages[0]!.content
    : messages;
}

export function readChat(field: string, value: unknown): Message[] {
  const parsed = ChatMessages.safeParse(value);
  if (parsed.success) return parsed.data;
  if (!Array.isArray(value)) {
    throw new RowProblem(field, `expected text or a list of { role, content }, got ${kind(value)}`);
  }
  if (value.length === 0) throw new RowProblem(field, "the list of messages is empty");
  const path = parsed.error.issues[0]!.path;
  const at = [field, ...path].join(".");
  const found = path.reduce<unknown>(
    (part, key) => (part as Columns | undefined)?.[String(key)],
    value,
  );
  throw new RowProblem(
    at,
    `expected ${path.length === 1 ? "{ role, content }" : "text"}, got ${kind(found)}`,
  );
}

const TextParts = z.array(z.object({ type: z.string(), text: z.string() }));

/**
 * The `input` of an OpenAI Responses request, as NeMo-Gym's rows have it: text, or messages whose
 * content is text or a list of parts with text. `instructions` are the system's message.
 */
export function readResponsesInput(field: string, value: unknown, instructions: unknown): Prompt {
  const prompt = readPrompt(
    field,
    !Array.isArray(value) ? value : value.map((message: unknown) => {
      const parts = TextParts.safeParse((message as Columns | null)?.content);
      if (!parts.success) return message;
      return Object.assign({}, message, { content: parts.data.map(({ text }) => text).join("") });
    }),
  );
  if (typeof instructions !== "string" || instructions === "") return prompt;
  const messages = typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;
  return [{ role: "system", content: instructions }, ...messages];
}

/** A value's type, as errors name it. */
export function kind(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (isImage(value)) return "an image (only text can be used: remove the row)";
  if (Array.isArray(value)) {
    const images = value.some(isImage);
    return images ? "a list with an image (only text can be used: remove the row)" : "a list";
  }
  if (typeof value === "object") return "an object";
  return typeof value === "string"
    ? `the text ${JSON.stringify(value.slice(0, 40))}`
    : `${typeof value} ${value}`;
}

/** An image as `datasets` keeps it in Parquet, or as a part of a message. */
function isImage(value: unknown): boolean {
  if (value === null || typeof value !== "object") return false;
  const { type, bytes, base64, image_url } = value as Columns;
  return (typeof type === "string" && /image/.test(type)) || image_url !== undefined ||
    base64 !== undefined || (typeof bytes === "object" && bytes !== null);
}

/** The fields of a row that are not null, for an error. */
export function fieldsOf(columns: Columns): string {
  const names = Object.keys(columns).filter((name) => columns[name] !== null);
  return names.map((name) => `'${name}'`).join(", ") || "no field";
}
