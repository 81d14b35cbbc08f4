import { createHash } from "node:crypto";
import { z } from "zod";
import { type ColumnType, type ColumnTypes, unified } from "./column_type.ts";
import type { DataPlace } from "../errors.ts";
import { hashOf } from "../rows/hash_set.ts";
import { type MappedRow, textOf } from "./map_row.ts";
import { Prompt } from "../prompt.ts";
import type { Columns } from "../rows/row_fields.ts";
import { writtenChat } from "../rows/tools.ts";

/** A mapped row on its way through a preparation, with the place that it came from. */
export const PreparedRow = z.strictObject({
  row_id: z.string(),
  prompt: Prompt,
  completion: Prompt.optional(),
  rejected: Prompt.optional(),
  margin: z.number().optional(),
  answer: z.string().optional(),
  tools: z.string().optional(),
  kept: z.record(z.string(), z.unknown()),
  number: z.int().describe("Its line or its row in the file, from 1."),
});
export type PreparedRow = z.infer<typeof PreparedRow>;

/** A mapped row with its place. */
export function preparedRow(row: MappedRow, { line, row: number }: DataPlace): PreparedRow {
  return { ...row, number: line ?? number! };
}

/** What a file's rows have beside their content. */
export type RowOrigin = { data_source: string; file: string; split: string };

/** The columns of a prepared row that are not kept from the source, in their order. */
const COLUMNS = "data_source tools prompt completion chosen rejected margin reward_model extra_info"
  .split(" ");

/**
 * A row as it is written: in verl's shape, a preference in TRL's. A source reads it back with the
 * same id, and needs no `fields`.
 */
export function preparedColumns(
  row: PreparedRow,
  { data_source, file, split }: RowOrigin,
): Columns {
  const { row_id, prompt, completion, rejected, margin, answer, tools, kept, number } = row;
  const answering = (side: Prompt): string | Columns[] =>
    typeof prompt === "string" || typeof side !== "string"
      ? writtenChat(side)
      : [{ role: "assistant", content: side }];
  const pair = rejected !== undefined;
  const columns = {
    data_source,
    tools,
    prompt: writtenChat(prompt),
    [pair ? "chosen" : "completion"]: completion === undefined ? undefined : answering(completion),
    rejected: pair ? answering(rejected) : undefined,
    margin,
    reward_model: answer === undefined ? undefined : { style: "rule", ground_truth: answer },
    extra_info: { index: row_id, split, file, row: number },
    ...kept,
  };
  return Object.fromEntries(Object.entries(columns).filter(([, value]) => value !== undefined));
}

/** Columns of what somebody says: text, or messages with a role. */
const SPOKEN = ["prompt", "completion", "chosen", "rejected"];
const MESSAGES: ColumnType = {
  is: "list",
  item: { is: "struct", fields: { role: { is: "text" }, content: { is: "text" } } },
};

/**
 * The type of a column that has values of both types. Beside messages, texts are written as
 * messages. @throws {TypeClash} If there is none.
 */
export function unifiedColumn(name: string, a: ColumnType, b: ColumnType): ColumnType {
  const spoken = SPOKEN.includes(name);
  if (spoken && a.is === "text" && b.is === "list") return b;
  if (spoken && a.is === "list" && b.is === "text") return a;
  return unified(a, b, name);
}

/** The types of all rows together: what answers messages is messages. */
export function writtenTypes(types: ColumnTypes): ColumnTypes {
  if (!isMessages(types, "prompt")) return types;
  const spoken = (name: string, { type, place }: ColumnTypes[string]) =>
    SPOKEN.includes(name) && type.is === "text" ? { type: MESSAGES, place } : { type, place };
  return Object.fromEntries(Object.entries(types).map(([name, one]) => [name, spoken(name, one)]));
}

/** A row with messages in place of texts wherever its columns have messages. */
export function inMessages(row: PreparedRow, types: ColumnTypes): PreparedRow {
  const { prompt, completion, rejected } = row;
  const asMessages = (name: string, role: string, text: Prompt): Prompt =>
    typeof text === "string" && isMessages(types, name)
      ? text === "" && name === "prompt" ? [] : [{ role, content: text }] // Nobody asks a whole text.
      : text;
  const better = rejected === undefined ? "completion" : "chosen";
  return {
    ...row,
    prompt: asMessages("prompt", "user", prompt),
    ...(completion !== undefined && { completion: asMessages(better, "assistant", completion) }),
    ...(rejected !== undefined && { rejected: asMessages("rejected", "assistant", rejected) }),
  };
}

function isMessages(types: ColumnTypes, name: string): boolean {
  return types[name]?.type.is === "list";
}

/** Names of columns in the order in which they are written. */
export function inColumnOrder(names: readonly string[]): string[] {
  const kept = names.filter((name) => !COLUMNS.includes(name)).toSorted();
  return [...COLUMNS.filter((name) => names.includes(name)), ...kept];
}

/** What makes two rows the same. */
export type Sameness = "prompt" | "row";

/** The hash by which equal rows are found. Spacing makes no difference; a whole text has no prompt. */
export function sameness(row: PreparedRow, wanted: Sameness): Uint8Array {
  const by = row.prompt === "" ? "row" : wanted;
  const parts = by === "prompt" ? [row.prompt] : [row.prompt, row.completion, row.rejected];
  const texts = parts.map((part) => textOf(part).replace(/\s+/g, " ").trim());
  const rest: unknown[] = by === "prompt" ? [] : [row.answer ?? null, row.kept];
  if (row.tools !== undefined) rest.push(row.tools);
  return hashOf(JSON.stringify([texts, rest]));
}

const UNIT_BYTES = 6;

/**
 * The split of a row, drawn by its id and the seed alone: neither other rows nor their order change
 * it. `splits`: weights, relative to each other.
 */
export function splitOf(
  row_id: string,
  { seed, splits }: { seed: number; splits: Record<string, number> },
): string {
  const digest = createHash("sha256").update(`${seed}\n${row_id}`).digest();
  const names = Object.keys(splits).toSorted();
  const whole = names.reduce((sum, name) => sum + splits[name]!, 0);
  let remaining = digest.readUIntBE(0, UNIT_BYTES) / 2 ** (8 * UNIT_BYTES) * whole;
  return names.find((name) => (remaining -= splits[name]!) < 0) ?? names.at(-1)!;
}
