/** An input as its intent records it: whole if it is small, else as a hash per field. */
import { canonicalFields, canonicalJson, type Field, objectOf, sha256Hex } from "../canonical.ts";
import type { Stage } from "../graph/stage.ts";

/** Larger inputs are recorded as a hash per field. Characters of JSON. */
const WHOLE_MAX = 4096;

/** `json`: the field of the intent, `"input":...` or `"parts":...`. */
type InputRecord = { hash: string; json: string };
type HashedStage = Pick<Stage, "name" | "version">;

/** The record of a stage's input. Its canonical JSON is written once, and a large one not kept. */
export function inputRecord(stage: HashedStage, input: unknown): InputRecord {
  const { fields, pieces } = written(input);
  const characters = pieces.reduce((sum, { length }) => sum + length, 0);
  if (characters > WHOLE_MAX) {
    return { hash: hashOf(stage, pieces), json: `"parts":${canonicalJson(hashes(fields))}` };
  }
  const whole = pieces.join("");
  return { hash: hashOf(stage, [whole]), json: `"input":${whole}` };
}

/** The hash under which the input of a stage is recorded. */
export function inputHash(stage: HashedStage, input: unknown): string {
  return hashOf(stage, written(input).pieces);
}

/** A hash per field of an input. */
export function partsOf(input: unknown): Record<string, string> {
  return hashes(written(input).fields);
}

/** Each field of an input as canonical JSON. */
export function fieldTexts(input: unknown): Record<string, string> {
  return Object.fromEntries(written(input).fields);
}

/** `pieces`: the canonical JSON of all of it. A list has its items as fields, other values one, `input`. */
type Written = { fields: Field[]; pieces: string[] };

function written(input: unknown): Written {
  const fields = canonicalFields(input);
  if (fields !== null) return { fields, pieces: objectOf(fields) };
  const text = canonicalJson(input);
  const items = Array.isArray(input) ? input : null;
  const named = items?.map((item, i): Field => [`${i}`, canonicalJson(item)]);
  return { fields: named ?? [["input", text]], pieces: [text] };
}

function hashOf({ name, version }: HashedStage, pieces: string[]): string {
  return sha256Hex([`${name}@${version}\n`, ...pieces]);
}

function hashes(fields: Field[]): Record<string, string> {
  return Object.fromEntries(fields.map(([name, text]) => [name, sha256Hex(text)]));
}
