import { z } from "zod";
import { type Message, Prompt, type Row } from "./prompt.ts";
import { asCompletion, readChat, readPrompt } from "./rows/read_chat.ts";
import { type Columns, fieldsOf, kind, read, RowProblem } from "./rows/row_fields.ts";
import type { SourceConfig } from "./source_config.ts";

const /** @internal */ preferencePairSchema = z.strictObject({
  row_id: z.string(),
  prompt: Prompt,
  chosen: Prompt,
  rejected: Prompt,
  margin: z.number().default(0),
  tools: z.string().optional().describe("As a row's."),
});
/** Two completions of one prompt; the first is preferred. */
export type PreferencePair = z.infer<typeof preferencePairSchema>;
/** Schema of {@linkcode PreferencePair}. */
export const PreferencePair: typeof preferencePairSchema = preferencePairSchema;

/** The pair of a row that was read as a preference. @throws {RangeError} If it was not. */
export function pairOf(row: Row): PreferencePair {
  const { row_id, prompt, completion, rejected, margin = 0, tools } = row;
  if (completion === undefined || rejected === undefined) {
    throw new RangeError(
      `Cannot compare the completions of row '${row_id}' because it was not read as a preference`,
    );
  }
  return { row_id, prompt, chosen: completion, rejected, margin, ...(tools && { tools }) };
}

type Sides = { chosen: Prompt; rejected: Prompt };
type Keys = { [side in keyof Sides]: string };

/** Whether a row is a preference by the names of its fields: it has both sides. */
export function isPreference(
  columns: Columns,
  { chosen = "chosen", rejected = "rejected" }: SourceConfig["fields"] = {},
): boolean {
  return [chosen, rejected].every((side) => (read(columns, side) ?? null) !== null);
}

/**
 * A preference row: `prompt`, `chosen`, `rejected`, each text or messages, and an optional number
 * `margin`. Without a prompt, or with a text prompt next to two complete conversations, the prompt
 * is the common beginning of both sides, as in TRL.
 * @throws {RowProblem} If the row is not a preference, or prefers nothing.
 */
export function readPreference(
  columns: Columns,
  fields: SourceConfig["fields"],
): Pick<Row, "prompt" | "completion" | "rejected" | "margin"> {
  const keys: Keys = { chosen: fields.chosen ?? "chosen", rejected: fields.rejected ?? "rejected" };
  const whole: Sides = {
    chosen: side(columns, keys.chosen),
    rejected: side(columns, keys.rejected),
  };
  if (textOf(whole.chosen) === textOf(whole.rejected)) {
    throw new RowProblem(
      keys.rejected,
      `is the same as '${keys.chosen}', so nothing is preferred; remove the row`,
    );
  }
  const promptKey = fields.prompt ?? "prompt";
  const prompted = read(columns, promptKey) ?? undefined;
  if (prompted === undefined && fields.prompt !== undefined) {
    throw new RowProblem(promptKey, `the row has no '${promptKey}' (it has ${fieldsOf(columns)})`);
  }
  const beside = typeof prompted === "string" && isConversation(whole.chosen) &&
    isConversation(whole.rejected);
  const { prompt, ...sides } = prompted === undefined || beside
    ? implicitPrompt(whole, keys)
    : { prompt: readPrompt(promptKey, prompted), ...whole };
  const margin = readMargin(columns, fields.margin ?? "margin");
  return {
    prompt,
    completion: answering(sides.chosen, keys.chosen),
    rejected: answering(sides.rejected, keys.rejected),
    ...(margin === undefined ? {} : { margin }),
  };
}

function side(columns: Columns, key: string): Prompt {
  const value = read(columns, key);
  if (typeof value === "string") return value;
  if (value !== undefined && value !== null) return readChat(key, value);
  const fix =
    "a preference has a 'chosen' and a 'rejected' completion, or name them with `fields: { " +
    "chosen: NAME, " +
    "rejected: NAME }`" +
    (columns.label === undefined ? "" : "; `algorithm: kto` learns from completions with a label");
  throw new RowProblem(key, `the row has no '${key}' (it has ${fieldsOf(columns)}); ${fix}`);
}

function textOf(side: Prompt): string {
  return JSON.stringify(typeof side === "string" ? side : asCompletion(side));
}

/** Messages that start before the answer: they include a question. */
function isConversation(side: Prompt): side is Message[] {
  return typeof side !== "string" && side[0]!.role !== "assistant";
}

/** A completion answers the prompt, so if it consists of messages, the first is the assistant's. */
function answering(side: Prompt, key: string): Prompt {
  if (typeof side === "string") return side;
  const { role } = side[0]!;
  if (role === "assistant") return asCompletion(side);
  throw new RowProblem(
    `${key}.0.role`,
    `the message after the prompt must be the assistant's, but it is of '${role}'; if both ` +
      "sides repeat the prompt, leave " +
      "`prompt` out: it is then their common beginning",
  );
}

/**
 * TRL's `extract_prompt`: the common prefix of both, never all of the shorter one, and without a
 * space at its end.
 */
function implicitPrompt({ chosen, rejected }: Sides, keys: Keys): Sides & { prompt: Prompt } {
  const places = `'${keys.chosen}' and '${keys.rejected}'`;
  if (typeof chosen === "string" && typeof rejected === "string") {
    const end = textPromptEnd(chosen, rejected);
    if (end === 0) {
      throw new RowProblem(
        "prompt",
        `missing, and ${places} start with different texts; add the prompt`,
      );
    }
    return {
      prompt: chosen.slice(0, end),
      chosen: chosen.slice(end),
      rejected: rejected.slice(end),
    };
  }
  if (typeof chosen === "string" || typeof rejected === "string") {
    throw new RowProblem(
      "prompt",
      `missing, and one of ${places} is text and the other is messages; add the prompt`,
    );
  }
  const end = commonLength(
    chosen,
    rejected,
    (a, b) => JSON.stringify(a) === JSON.stringify(b),
  );
  if (end === 0) {
    throw new RowProblem(
      "prompt",
      `missing, and ${places} start with different messages; add the prompt`,
    );
  }
  return { prompt: chosen.slice(0, end), chosen: chosen.slice(end), rejected: rejected.slice(end) };
}

function textPromptEnd(chosen: string, rejected: string): number {
  const [a, b] = [[...chosen], [...rejected]]; // Characters as Python counts them.
  const end = commonLength(a, b, (x, y) => x === y);
  const kept = end > 0 && a[end - 1] === " " ? end - 1 : end;
  return a.slice(0, kept).join("").length;
}

function commonLength<T>(a: readonly T[], b: readonly T[], same: (a: T, b: T) => boolean): number {
  const most = Math.max(Math.min(a.length, b.length) - 1, 0);
  const differs = a.findIndex((x, i) => i >= most || !same(x, b[i]!));
  return differs === -1 ? most : Math.min(differs, most);
}

function readMargin(columns: Columns, key: string): number | undefined {
  const value = read(columns, key);
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new RowProblem(
    key,
    `expected a number, got ${kind(value)}; leave it out if there is none`,
  );
}
