import { contentId } from "../content_id.ts";
import { isPreference, readPreference } from "../preference.ts";
import type { Message, Prompt, Row } from "../prompt.ts";
import {
  asCompletion,
  readChat,
  readCompletion,
  readPrompt,
  readResponsesInput,
} from "./read_chat.ts";
import { type Columns, fieldsOf, kind, read, readText, RowProblem } from "./row_fields.ts";
import { type FoundShape, type ShapeKeys, shapeOf } from "./row_shapes.ts";
import type { SourceConfig } from "../source_config.ts";
import { withTemplate } from "./prompt_template.ts";
import { readTools } from "./tools.ts";
import { readLabel } from "../unpaired.ts";

type Shape = Pick<Row, "prompt" | "completion" | "answer" | "rejected" | "margin" | "label">;

const FINAL_MARK = "####";

/**
 * Converts one row of any known shape to one form: a `preference` if requested (`readPreference`),
 * or, if `unpaired` is, a preference or a completion with its label; else configured `fields`, else
 * the first shape of `row_shapes.ts` that it has. Of chat `messages` a last assistant turn is the
 * completion, or all assistant turns under `every_turn`. If `#### N` ends an answer (GSM8K), N is
 * the reference and the whole text the completion. verl's `reward_model.ground_truth` is also an
 * answer.
 * @throws {RowProblem} If the row has no such shape.
 */
export function normalise(
  columns: Columns,
  source: Omit<SourceConfig, "path">,
  { preference = false, unpaired = false, every_turn = false, found }: {
    preference?: boolean;
    unpaired?: boolean;
    every_turn?: boolean;
    found?: FoundShape;
  } = {},
): Row {
  const filled = withTemplate(columns, source.fields);
  const isPair = preference || (unpaired && isPreference(columns, source.fields));
  const shape = isPair
    ? readPreference(filled.columns, filled.fields)
    : ofRow(filled.columns, filled.fields, { every_turn, found });
  const id = rowId(columns, source.fields.id);
  const prompt = dress(shape.prompt, source);
  // Plain text goes through no chat template.
  const tools = typeof prompt === "string" ? undefined : toolsOf(columns, source.fields);
  const row_id = source.name === undefined ? id : `${source.name}/${id}`;
  const row: Row = { row_id, ...shape, prompt, columns };
  if (unpaired && !isPair) row.label = readLabel(columns, source.fields);
  if (tools) row.tools = tools;
  return row;
}

/** The fields in which rows have tools, as frameworks call them. */
const TOOLS = ["tools", "tool_defs", "responses_create_params.tools"];

function toolsOf(columns: Columns, fields: SourceConfig["fields"]): string | undefined {
  const key = fields.tools ?? TOOLS.find((name) => (read(columns, name) ?? null) !== null);
  return key === undefined ? undefined : readTools(key, read(columns, key));
}

/** `found`: the row's shape, if it is known. Of a preference, only the prompt is read here. */
function ofRow(
  columns: Columns,
  fields: SourceConfig["fields"],
  { every_turn, found }: { every_turn: boolean; found?: FoundShape },
): Shape {
  const known = found?.preference || fields.chosen !== undefined ? undefined : found;
  const { keys } = known ?? shapeOf(columns, fields, { preference: false });
  if (keys.messages !== undefined) return ofMessages(columns.messages, every_turn);
  return keys.text === undefined ? ofPrompt(columns, { keys, fields }) : ofText(columns.text);
}

/**
 * The completion is the last assistant turn, or `everyTurn` from the first to the last one: then
 * what follows is left out.
 */
function ofMessages(value: unknown, everyTurn: boolean): Shape {
  const messages = readChat("messages", value);
  const isAnswer = ({ role }: Message) => role === "assistant";
  const last = everyTurn ? messages.findLastIndex(isAnswer) : messages.length - 1;
  if (last < 0 || !isAnswer(messages[last]!)) return { prompt: messages };
  if (last === 0) {
    throw new RowProblem(
      "messages",
      messages.length === 1
        ? "the only message is the assistant's: there is no prompt"
        : "the assistant answers no message: there is no prompt",
    );
  }
  // What the assistant says first answers nothing: it is part of the prompt.
  const first = everyTurn ? messages.findIndex((message, i) => i > 0 && isAnswer(message)) : last;
  const completion = asCompletion(messages.slice(first, last + 1));
  return { prompt: messages.slice(0, first), completion };
}

/** All of a text is learnt, so nothing is its prompt. */
function ofText(value: unknown): Shape {
  if (typeof value === "string" && value !== "") return { prompt: "", completion: value };
  throw new RowProblem("text", value === "" ? "it is empty" : `expected text, got ${kind(value)}`);
}

type Named = { keys: ShapeKeys; fields: SourceConfig["fields"] };

function ofPrompt(columns: Columns, { keys, fields }: Named): Shape {
  const key = fields.prompt ?? keys.prompt;
  const value = key === undefined ? undefined : read(columns, key);
  if (key === undefined || value === undefined || value === null) {
    const wanted = key === undefined ? "'prompt', 'messages' or 'question'" : `'${key}'`;
    throw new RowProblem(
      key,
      `the row has no ${wanted} (it has ${
        fieldsOf(columns)
      }); name the field with \`fields: { prompt: NAME }\``,
    );
  }
  const answerText = textAnswer(columns, fields.answer ?? keys.answer);
  const final = answerText === undefined ? undefined : finalAnswer(answerText);
  const completionKey = fields.completion ?? keys.completion ?? "completion";
  const completion = read(columns, completionKey) ?? (final === undefined ? undefined : answerText);
  // A prepared file whose other rows are chats has an empty list of messages.
  const isEmpty = value === "" || (Array.isArray(value) && value.length === 0);
  const isWhole = isEmpty && completion !== undefined;
  if (isWhole && completion === "") {
    throw new RowProblem(completionKey, "it is empty, and so is the prompt");
  }
  const shape: Shape = { prompt: "" };
  if (!isWhole) {
    shape.prompt = keys.instructions === undefined
      ? readPrompt(key, value)
      : readResponsesInput(key, value, read(columns, keys.instructions));
  }
  if (completion !== undefined) shape.completion = readCompletion(completionKey, completion);
  if (answerText !== undefined) shape.answer = final ?? answerText;
  return shape;
}

/**
 * The text after the first `####` of the last line, or the whole line if the mark is alone on the
 * line before. Searched once, from the end: rows may be of any length.
 */
function finalAnswer(text: string): string | undefined {
  const whole = text.trimEnd();
  const begin = whole.lastIndexOf("\n") + 1;
  const line = whole.slice(begin);
  if (line !== "" && whole.slice(0, begin).trimEnd().endsWith(FINAL_MARK)) return line.trimStart();
  const mark = line.indexOf(FINAL_MARK);
  const after = mark < 0 ? "" : line.slice(mark + FINAL_MARK.length).trimStart();
  return after === "" ? undefined : after;
}

/** Where rows have their answers, as frameworks call them. */
const ANSWER_FIELDS = ["answer", "reward_model.ground_truth"];

/** What a row has as its answer, text or not; undefined: nothing. `key`: its field. */
export function rowAnswer(columns: Columns, key?: string): unknown {
  const field = answerField(columns, key);
  return field && read(columns, field);
}

/** An object or a list (what a checker needs, several accepted answers) is no text: no answer. */
function textAnswer(columns: Columns, key?: string): string | undefined {
  const field = answerField(columns, key);
  return field && readText(columns, field);
}

function answerField(columns: Columns, key?: string): string | undefined {
  const fields = key === undefined ? ANSWER_FIELDS : [key];
  return fields.find((name) => (read(columns, name) ?? null) !== null);
}

/** Where rows have their ids, as frameworks call them. */
const ID_FIELDS = ["id", "row_id", "extra_info.index"];

/** The row's own id, else the hash of its content. */
function rowId(columns: Columns, field: string | undefined): string {
  for (const name of field === undefined ? ID_FIELDS : [field]) {
    const value = read(columns, name);
    if (isId(value)) return readText(columns, name)!;
    if (field === undefined) continue;
    throw new RowProblem(field, `expected an id (text or a number), got ${kind(value)}`);
  }
  return contentId(columns);
}

function isId(value: unknown): value is string | number {
  return typeof value === "number" || (typeof value === "string" && value !== "");
}

/** Roles of messages that instruct the model; OpenAI's newer name is `developer`. */
const INSTRUCTING = ["system", "developer"];

/**
 * Adds what the source requires: the chat form, a system message unless the row has one, an
 * instruction.
 */
function dress(prompt: Prompt, source: Omit<SourceConfig, "path">): Prompt {
  if (prompt === "") return undressed(source);
  const tail = source.instruction === undefined ? "" : `\n${source.instruction}`;
  const isChat = typeof prompt !== "string" || source.prompt_as === "chat" ||
    source.system !== undefined;
  if (!isChat) return prompt + tail;
  const messages: Message[] = typeof prompt === "string"
    ? [{ role: "user", content: prompt }]
    : prompt;
  const asker = messages.findLastIndex((message) => message.role === "user");
  const extended = messages.map((message, i) =>
    i === asker ? { ...message, content: (message.content ?? "") + tail } : message
  );
  return source.system === undefined || isInstructed(extended)
    ? extended
    : [{ role: "system", content: source.system }, ...extended];
}

/** A whole text, which is learnt as it is. */
function undressed({ system, instruction, prompt_as }: Omit<SourceConfig, "path">): Prompt {
  const added = { system, instruction, prompt_as: prompt_as === "chat" ? prompt_as : undefined };
  const [setting] = Object.entries(added).find(([, value]) => value !== undefined) ?? [];
  if (setting === undefined) return "";
  throw new RowProblem(
    "prompt",
    `the row has no prompt that \`${setting}\` could be added to; leave it out, or name the prompt ` +
      "with `fields: { prompt: NAME }`",
  );
}

function isInstructed(prompt: Prompt): boolean {
  return typeof prompt !== "string" && prompt.some(({ role }) => INSTRUCTING.includes(role));
}
