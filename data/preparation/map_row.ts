import { contentId } from "../content_id.ts";
import type { DataPlace } from "../errors.ts";
import type { PreparedSource } from "./prepared_source.ts";
import type { Message, Prompt, Row } from "../prompt.ts";
import { repaired } from "../rows/repairs.ts";
import { type Columns, read } from "../rows/row_fields.ts";
import { readRow, type RowNeeds } from "../rows/source_row.ts";
import { SourceConfig } from "../source_config.ts";
import { textOfMessage } from "../rows/tools.ts";

/** A row of a preparation: a source's row, and the columns that it keeps. */
export type MappedRow = Omit<Row, "columns"> & { kept: Columns };

/** Maps rows of one source; null: a row maps to nothing. */
export type RowMapper = (columns: Columns, place: DataPlace) => MappedRow | null;

/**
 * How the rows of a source are mapped.
 * The mapper throws a {@linkcode DataError} if a row cannot be read, or lacks what rows need.
 */
export function rowMapper(source: PreparedSource, needs?: RowNeeds): RowMapper {
  const { split: _, answer_as, dialogue, ids, keep, repairs, ...rest } = source;
  const reading = SourceConfig.parse(rest);
  const named = source.name === undefined ? "" : `${source.name}/`;
  return (written, place) => {
    const columns = repaired(written, repairs);
    const converted = dialogue === "as_is" ? columns : asDialogue(columns, source);
    if (converted === null) return null;
    const { columns: _, ...row } = readRow(converted, { source: reading, place, needs });
    const mapped: typeof row = { ...row };
    if (answer_as === "boxed") {
      const boxed = row.answer === undefined ? null : lastBoxed(row.answer);
      if (boxed === null) return null;
      Object.assign(mapped, { completion: row.completion ?? row.answer, answer: boxed });
    }
    if (answer_as === "number") {
      const number = row.answer === undefined ? null : numberOf(row.answer);
      if (number === null) return null;
      mapped.answer = number;
    }
    if (ids === "content") mapped.row_id = `${named}${contentId(columns)}`;
    const kept = Object.entries(keep).map(([name, field]) => [name, read(columns, field)])
      .filter(([, value]) => value !== undefined);
    return { ...mapped, kept: Object.fromEntries(kept) };
  };
}

const NUMBER = /^([-+]?\$?(?:\d+(?:,\d{3})*(?:\.\d+)?|\.\d+))(?:\s*\(([^()]*)\))?$/;
/** Words and signs that are factors, no units: `m` is metres, and a T-shirt no trillion. */
const FACTOR = new RegExp(
  "^(?:[kKMBT]|(?i:hundred|thousand|lakh|million|crore|billion|trillion|dozen)s?)" +
    "(?![\\p{L}\\p{N}-])",
  "u",
);

/** The number of a text that is one, perhaps with a unit: `9 (apples)`. Null: it is none. */
export function numberOf(text: string): string | null {
  const [, number, unit = ""] = text.trim().match(NUMBER) ?? [];
  return number === undefined || FACTOR.test(unit.trim()) ? null : number;
}

const BOXED = /\\f?boxed\s*\{/g;

/** What the last `\boxed{...}` of a text contains, with balanced braces; null: there is none. */
export function lastBoxed(text: string): string | null {
  const starts = [...text.matchAll(BOXED)].map((found) => found.index + found[0].length);
  for (const start of starts.reverse()) {
    const end = closingBrace(text, start);
    const content = end < 0 ? "" : text.slice(start, end).trim();
    if (content !== "") return content;
  }
  return null;
}

/** Where the brace that was opened before `start` closes; -1: nowhere. */
function closingBrace(text: string, start: number): number {
  let open = 1;
  for (let at = start; at < text.length; at++) {
    if (text[at] === "\\") at++; // An escaped brace opens and closes nothing.
    else if (text[at] === "{") open++;
    else if (text[at] === "}" && --open === 0) return at;
  }
  return -1;
}

/** With the texts of a preference, or the prompt, as messages; null: one is no dialogue. */
function asDialogue(columns: Columns, { fields }: PreparedSource): Columns | null {
  const names = [
    fields.chosen ?? "chosen",
    fields.rejected ?? "rejected",
    fields.prompt ?? "prompt",
    fields.completion ?? "completion",
  ].filter((name) => typeof columns[name] === "string");
  if (names.length === 0) return columns;
  const turns = names.map((name): [string, Message[] | null] => [
    name,
    dialogueOf(columns[name] as string),
  ]);
  if (turns.some(([, messages]) => messages === null)) return null;
  return { ...columns, ...Object.fromEntries(turns) };
}

const TURN = /(?:^|\n\n)(Human|Assistant):/g;

/**
 * The messages of a text as hh-rlhf has it: `\n\nHuman: ...\n\nAssistant: ...`. Turns of one
 * speaker that follow each other are one message. Null: it does not start with a turn, or a turn is
 * empty.
 */
export function dialogueOf(text: string): Message[] | null {
  const whole = text.trim();
  const found = [...whole.matchAll(TURN)];
  if (found[0]?.index !== 0) return null;
  const messages: Message[] = [];
  for (const [i, { 0: mark, 1: speaker, index }] of found.entries()) {
    const content = whole.slice(index + mark.length, found[i + 1]?.index).trim();
    if (content === "") return null;
    const role = speaker === "Human" ? "user" : "assistant";
    const last = messages.at(-1);
    if (last?.role === role) last.content = `${last.content}\n\n${content}`;
    else messages.push({ role, content });
  }
  return messages;
}

/** The whole text of a prompt or a completion, for hashes, limits and contamination. */
export function textOf(part: Prompt | undefined): string {
  if (part === undefined) return "";
  return typeof part === "string" ? part : part.map(textOfMessage).join("\n");
}

/** Every text that a row teaches or asks. */
export function textsOf({ prompt, completion, rejected }: Omit<MappedRow, "kept">): string[] {
  return [prompt, completion, rejected].filter((part) => part !== undefined).map(textOf);
}
