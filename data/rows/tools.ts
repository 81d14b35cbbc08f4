import {
  isAsWritten,
  parseAsWritten,
  parseExactly,
  spelledAs,
  writeExactly,
} from "../exact_json.ts";
import type { Message, Prompt, Row } from "../prompt.ts";
import { type Columns, kind, refuseBroken, RowProblem } from "./row_fields.ts";

const FORM = "expected a list of { type, function }, or its JSON text";

/**
 * JSON of the functions that a row offers; absent: none. Text is JSON. A function that stands without its
 * `{ type, function }`, as in a Responses request, gets it: chat templates expect it.
 * @throws {RowProblem} If it is not a list of functions.
 */
export function readTools(field: string, value: unknown): string | undefined {
  if (value === undefined || value === null || value === "") return undefined;
  const list = typeof value === "string" ? parsed(value, parseAsWritten) : value;
  if (!Array.isArray(list)) {
    throw new RowProblem(
      field,
      `${FORM}, got ${kind(value)}; name the field with \`fields: { tools: NAME }\``,
    );
  }
  if (list.length === 0) return undefined;
  refuseBroken(list, field); // JSON text is whole while it has half a character as an escape.
  return writeExactly(list.map((tool, i) => {
    if (isObject(tool)) return asTool(withoutNulls(tool) as Columns);
    const plain: unknown = isAsWritten(tool) ? JSON.parse(JSON.stringify(tool)) : tool;
    throw new RowProblem(`${field}.${i}`, `expected { type, function }, got ${kind(plain)}`);
  }));
}

function asTool(tool: Columns): Columns {
  if (tool.function !== undefined || typeof tool.name !== "string") return tool;
  const { type: _, ...definition } = tool;
  return { type: "function", function: definition };
}

/**
 * A call's arguments are an object, or its JSON text as OpenAI writes it; the text becomes an
 * object when a template renders it.
 * @throws {RowProblem} If they are neither, so that no template could.
 */
export function checkToolCalls(field: string, calls: unknown): void {
  if (calls === undefined) return;
  if (!Array.isArray(calls)) throw new RowProblem(field, `expected a list, got ${kind(calls)}`);
  for (const [i, call] of calls.entries()) {
    const at = `${field}.${i}`;
    if (!isObject(call)) throw new RowProblem(at, `expected { function }, got ${kind(call)}`);
    const isWrapped = isObject(call.function);
    const called = isWrapped ? call.function as Columns : call;
    const inside = isWrapped ? `${at}.function` : at;
    if (typeof called.name !== "string") {
      throw new RowProblem(`${inside}.name`, `expected text, got ${kind(called.name)}`);
    }
    const { arguments: written } = called;
    const value = typeof written === "string" ? parsed(written) : written;
    refuseBroken(value, `${inside}.arguments`);
    if (written === undefined || isObject(value)) continue;
    throw new RowProblem(
      `${inside}.arguments`,
      `expected an object or its JSON text, got ${kind(written)}`,
    );
  }
}

/** A message with all its fields, as a template sees it. */
export function wholeMessage({ more, ...message }: Message): Columns {
  return more === undefined ? message : { ...message, ...parseExactly(more) as Columns };
}

/**
 * A chat as it is written to files, whose columns have one type: arguments of calls are JSON text.
 */
export function writtenChat(prompt: Prompt): string | Columns[] {
  return typeof prompt === "string" ? prompt : prompt.map((one) => {
    const message = wholeMessage(one);
    const { tool_calls: calls } = message;
    return Array.isArray(calls) ? { ...message, tool_calls: calls.map(withText) } : message;
  });
}

function withText(call: Columns): Columns {
  if (isObject(call.function)) return { ...call, function: withText(call.function) };
  const { arguments: written } = call;
  return isObject(written) ? { ...call, arguments: writeExactly(written) } : call;
}

/** Whether a row has what only a chat template can write: tools, or messages with more fields. */
export function needsTemplate(
  { prompt, completion, rejected, tools }: Pick<
    Row,
    "prompt" | "completion" | "rejected" | "tools"
  >,
): boolean {
  const more = ({ more }: Message) => more !== undefined;
  return tools !== undefined ||
    [prompt, completion, rejected].some((part) => Array.isArray(part) && part.some(more));
}

/** Everything that a message says, as one text. */
export function textOfMessage({ content, more }: Message): string {
  return [content ?? undefined, more].filter((one) => one !== undefined).join("\n");
}

/** As TRL: Parquet gives every call the arguments of all calls, null where it has none. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return spelledAs(value, value.map(withoutNulls));
  if (!isObject(value)) return value;
  const fields = Object.entries(value).filter(([, one]) => one !== null);
  const rest = Object.fromEntries(fields.map(([name, one]) => [name, withoutNulls(one)]));
  return spelledAs(value, rest);
}

function isObject(value: unknown): value is Columns {
  return value !== null && typeof value === "object" && !Array.isArray(value) &&
    !isAsWritten(value);
}

function parsed(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(text);
  } catch {
    return undefined;
  }
}
