import { z } from "zod";
import { Prompt, type Row } from "./prompt.ts";
import { type Columns, fieldsOf, kind, read, RowProblem } from "./rows/row_fields.ts";
import type { SourceConfig } from "./source_config.ts";

const /** @internal */ unpairedCompletionSchema = z.strictObject({
  row_id: z.string(),
  prompt: Prompt,
  completion: Prompt,
  label: z.boolean().describe("Whether the completion is desirable."),
  tools: z.string().optional().describe("As a row's."),
});
/** A completion that is desirable or undesirable, without a partner to compare it with. */
export type UnpairedCompletion = z.infer<typeof unpairedCompletionSchema>;
/** Schema of {@linkcode UnpairedCompletion}. */
export const UnpairedCompletion: typeof unpairedCompletionSchema = unpairedCompletionSchema;

/**
 * The completions of a row that was read with a label, or of a preference: its chosen side is
 * desirable, its rejected side is not. @throws {RangeError} If the row is neither.
 */
export function labelledCompletions(row: Row): UnpairedCompletion[] {
  const { row_id, prompt, completion, rejected, label, tools } = row;
  if (completion === undefined || (rejected === undefined && label === undefined)) {
    throw new RangeError(
      `Cannot learn from the completion of row '${row_id}' because it was read without a label`,
    );
  }
  const one = (side: Prompt, label: boolean): UnpairedCompletion => ({
    row_id,
    prompt,
    completion: side,
    label,
    ...(tools && { tools }),
  });
  return rejected === undefined
    ? [one(completion, label!)]
    : [one(completion, true), one(rejected, false)];
}

/** Labels as texts, which is all that CSV has. */
const WORDS = new Map([["true", true], ["1", true], ["false", false], ["0", false]]);

/**
 * Whether a row's completion is desirable: its `label`, true or false, or 1 or 0, or their text.
 * @throws {RowProblem} If it has no such label.
 */
export function readLabel(columns: Columns, fields: SourceConfig["fields"]): boolean {
  const key = fields.label ?? "label";
  const value = read(columns, key) ?? undefined;
  if (value === true || value === 1) return true;
  if (value === false || value === 0) return false;
  const word = typeof value === "string" ? WORDS.get(value.trim().toLowerCase()) : undefined;
  if (word !== undefined) return word;
  throw new RowProblem(
    key,
    value === undefined
      ? `the row has no '${key}' (it has ${fieldsOf(columns)}); an unpaired preference has a ` +
        "prompt, a completion and a label, a pair has 'chosen' and 'rejected'; or name the label " +
        "with `fields: { label: NAME }`"
      : `expected true or false, or 1 or 0, got ${kind(value)}`,
  );
}

/** Rotations that are tried to find one under which no completion meets its own prompt. */
const ROTATIONS_MAX = 64;

/**
 * For each completion the place of one that answers a different prompt: [N]. All completions are
 * rotated by the same number of places, the smallest one that leaves the fewest behind the prompt
 * that they answer, so that every completion is used once.
 */
export function mismatchedOf(completions: readonly Pick<UnpairedCompletion, "prompt">[]): number[] {
  const numbers = new Map<string, number>();
  const prompts = completions.map(({ prompt }) => {
    const text = JSON.stringify(prompt);
    if (!numbers.has(text)) numbers.set(text, numbers.size);
    return numbers.get(text)!;
  });
  const n = completions.length;
  const rotated = (by: number) => prompts.map((_, i) => (i + by) % n);
  let best = { matches: Infinity, by: 1 };
  for (let by = 1; by < Math.min(n, ROTATIONS_MAX + 1) && best.matches > 0; by++) {
    const matches = rotated(by).filter((place, i) => prompts[place] === prompts[i]).length;
    if (matches < best.matches) best = { matches, by };
  }
  return rotated(best.by);
}
