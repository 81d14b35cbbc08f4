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

/** The value of a field; `a.b` reads a nested one. */
export function read(columns: Columns, path: string): unknown {
  if (columns[path] !== undefined) return columns[path];
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

/** A value's type, as errors name it. */
export function kind(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  return typeof value === "string"
    ? `the text ${JSON.stringify(value.slice(0, 40))}`
    : `${typeof value} ${value}`;
}

/** The fields of a row, for an error. */
export function fieldsOf(columns: Columns): string {
  return Object.keys(columns).map((name) => `'${name}'`).join(", ") || "no field";
}
