import { z } from "zod";
import { contentId } from "./content_id.ts";
import { type Message, Prompt, type Row } from "./prompt.ts";
import type { SourceConfig } from "./source_config.ts";

/** What a row lacks. `field` is a path inside the row. */
export class RowProblem extends Error {
  constructor(readonly field: string | undefined, message: string) {
    super(message);
    this.name = "RowProblem";
  }
}

type Columns = Record<string, unknown>;
type Shape = Pick<Row, "prompt" | "completion" | "answer">;

// Chats carry more than role and content (names, weights, tool calls); only these two reach the chat template.
const ChatMessages = z.array(z.object({ role: z.string(), content: z.string() })).min(1);
const FINAL_ANSWER = /####\s*(\S[^\n]*?)\s*$/;

/**
 * One row of any known shape to one form. Shapes, first match wins: configured `fields`; chat `messages` (a last
 * assistant turn is the completion); `prompt` with `completion` or `answer`; `question` or `problem` with `answer`
 * (GSM8K: `#### N` ends the answer, N is the reference and the whole text the completion). verl's
 * `reward_model.ground_truth` is an answer too.
 * @throws {RowProblem} If the row has no such shape.
 */
export function normalise(columns: Columns, source: Omit<SourceConfig, "path">): Row {
  const shape = source.fields.prompt === undefined && columns.messages !== undefined
    ? ofMessages(columns.messages)
    : ofPrompt(columns, source.fields);
  const id = rowId(columns, source.fields.id);
  return {
    row_id: source.name === undefined ? id : `${source.name}/${id}`,
    ...shape,
    prompt: dress(shape.prompt, source),
    columns,
  };
}

function ofMessages(value: unknown): Shape {
  const messages = chat("messages", value);
  const last = messages.at(-1)!;
  if (last.role !== "assistant") return { prompt: messages };
  if (messages.length === 1) throw new RowProblem("messages", "the only message is the assistant's: nothing is asked");
  return { prompt: messages.slice(0, -1), completion: last.content };
}

function ofPrompt(columns: Columns, fields: SourceConfig["fields"]): Shape {
  const key = fields.prompt ?? ["prompt", "question", "problem"].find((name) => columns[name] !== undefined);
  if (key === undefined || read(columns, key) === undefined) {
    const wanted = key === undefined ? "'prompt', 'messages' or 'question'" : `'${key}'`;
    const has = Object.keys(columns).map((name) => `'${name}'`).join(", ") || "no field";
    throw new RowProblem(
      key,
      `the row has no ${wanted} (it has ${has}); name the field with \`fields: { prompt: NAME }\``,
    );
  }
  const prompt = readPrompt(key, read(columns, key));
  const answerKey = fields.answer ?? (columns.answer === undefined ? "reward_model.ground_truth" : "answer");
  const answerText = readAnswer(answerKey, read(columns, answerKey));
  const final = answerText?.match(FINAL_ANSWER);
  const completionKey = fields.completion ?? "completion";
  const completion = read(columns, completionKey) ?? (final ? answerText : undefined);
  return {
    prompt,
    ...(completion === undefined ? {} : { completion: readCompletion(completionKey, completion) }),
    ...(answerText === undefined ? {} : { answer: final ? final[1] : answerText }),
  };
}

function readPrompt(field: string, value: unknown): Prompt {
  if (typeof value !== "string") return chat(field, value);
  if (value === "") throw new RowProblem(field, "the prompt is empty");
  return value;
}

/** A chat completion of one assistant message is its text: the prompt's chat template adds the rest. */
function readCompletion(field: string, value: unknown): Prompt {
  if (typeof value === "string") return value;
  const messages = chat(field, value);
  return messages.length === 1 && messages[0]!.role === "assistant" ? messages[0]!.content : messages;
}

function readAnswer(field: string, value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  throw new RowProblem(field, `expected text or a number, got ${kind(value)}`);
}

function chat(field: string, value: unknown): Message[] {
  const parsed = ChatMessages.safeParse(value);
  if (parsed.success) return parsed.data;
  if (!Array.isArray(value)) {
    throw new RowProblem(field, `expected text or a list of { role, content }, got ${kind(value)}`);
  }
  if (value.length === 0) throw new RowProblem(field, "the list of messages is empty");
  const path = parsed.error.issues[0]!.path;
  const at = [field, ...path].join(".");
  const found = path.reduce<unknown>((part, key) => (part as Columns | undefined)?.[String(key)], value);
  throw new RowProblem(at, `expected ${path.length === 1 ? "{ role, content }" : "text"}, got ${kind(found)}`);
}

/** The row's own id (`id`, `row_id`, `extra_info.index`), else the hash of its content. */
function rowId(columns: Columns, field: string | undefined): string {
  const key = field ?? ["id", "row_id", "extra_info.index"].find((name) => isId(read(columns, name)));
  if (key === undefined) return contentId(columns);
  const value = read(columns, key);
  if (!isId(value)) throw new RowProblem(key, `expected an id (text or a number), got ${kind(value)}`);
  return String(value);
}

function isId(value: unknown): boolean {
  return typeof value === "number" || (typeof value === "string" && value !== "");
}

/** Puts on what the source asks for: the chat form, a system message, an instruction. */
function dress(prompt: Prompt, source: Omit<SourceConfig, "path">): Prompt {
  const tail = source.instruction === undefined ? "" : `\n${source.instruction}`;
  const isChat = typeof prompt !== "string" || source.prompt_as === "chat" || source.system !== undefined;
  if (!isChat) return prompt + tail;
  const messages: Message[] = typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt;
  const asker = messages.findLastIndex((message) => message.role === "user");
  const asked = messages.map((message, i) => i === asker ? { ...message, content: message.content + tail } : message);
  return source.system === undefined ? asked : [{ role: "system", content: source.system }, ...asked];
}

function read(columns: Columns, path: string): unknown {
  if (columns[path] !== undefined) return columns[path];
  return path.split(".").reduce<unknown>((part, key) => (part as Columns | null | undefined)?.[key], columns);
}

/** How a value is called in an error. */
export function kind(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "object") return "an object";
  return typeof value === "string" ? `the text ${JSON.stringify(value.slice(0, 40))}` : `${typeof value} ${value}`;
}
