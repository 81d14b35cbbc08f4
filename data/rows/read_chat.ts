import { z } from "zod";
import { spelledAs, writeExactly } from "../exact_json.ts";
import type { Message, Prompt } from "../prompt.ts";
import { type Columns, kind, RowProblem } from "./row_fields.ts";
import { checkToolCalls, withoutNulls } from "./tools.ts";

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

/** A message with more than content stays a message. */
export function asCompletion(messages: Message[]): Prompt {
  const [{ role, content, more }] = messages as [Message];
  const isText = messages.length === 1 && role === "assistant" && more === undefined;
  return isText && content !== null ? content : messages;
}

/** The messages of a chat with all their fields. A field that is null is not there. */
export function readChat(field: string, value: unknown): Message[] {
  if (!Array.isArray(value)) {
    throw new RowProblem(field, `expected text or a list of { role, content }, got ${kind(value)}`);
  }
  if (value.length === 0) throw new RowProblem(field, "the list of messages is empty");
  return value.map((message, i) => readMessage(`${field}.${i}`, message));
}

/** What an assistant may have beside its content, or in its place. */
const SPEAKING = ["tool_calls", "reasoning_content", "reasoning", "thinking"];

function readMessage(at: string, value: unknown): Message {
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new RowProblem(at, `expected { role, content }, got ${kind(value)}`);
  }
  const { role, content: written, ...more } = value as Columns;
  const content = joinedParts(written);
  if (typeof role !== "string") {
    throw new RowProblem(`${at}.role`, `expected text, got ${kind(role)}`);
  }
  const fields = Object.entries(more).filter(([name, field]) => !saysNothing(name, field))
    .map(([name, field]) => [name, withoutNulls(field)]);
  const spelled = spelledAs(value, Object.fromEntries(fields));
  checkToolCalls(`${at}.tool_calls`, spelled.tool_calls);
  // OpenAI writes null where an assistant only calls tools.
  const mayBeNull = role === "assistant" && SPEAKING.some((name) => name in spelled);
  if (typeof content !== "string" && !(mayBeNull && (content ?? null) === null)) {
    throw new RowProblem(`${at}.content`, `expected text, got ${kind(content)}`);
  }
  const message = { role, content: typeof content === "string" ? content : null };
  return fields.length === 0 ? message : { ...message, more: writeExactly(spelled) };
}

/** Parquet writes null for what a message lacks, and many writers an empty list of calls. */
function saysNothing(name: string, field: unknown): boolean {
  const calls = name === "tool_calls" && Array.isArray(field) && field.length === 0;
  return field === null || field === undefined || calls;
}

/** Content parts of OpenAI's chats (`text`) and of its Responses, which are all text. */
const TextParts = z.array(
  z.object({ type: z.enum(["text", "input_text", "output_text"]), text: z.string() }),
).min(1);

/** Content as text: parts that are all text say it together. Anything else stays. */
function joinedParts(content: unknown): unknown {
  const parts = TextParts.safeParse(content);
  return parts.success ? parts.data.map(({ text }) => text).join("") : content;
}

/**
 * The `input` of an OpenAI Responses request, as NeMo-Gym's rows have it: text, or messages.
 * `instructions` are the system's message.
 */
export function readResponsesInput(field: string, value: unknown, instructions: unknown): Prompt {
  const prompt = readPrompt(field, value);
  if (typeof instructions !== "string" || instructions === "") return prompt;
  const messages = typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;
  return [{ role: "system", content: instructions }, ...messages];
}
