import { z } from "zod";
import { Config } from "./schema.ts";
import { readableJson, withDefinitions } from "./schema_definitions.ts";

/** @internal */
type Json = Record<string, unknown>;

/**
 * The JSON Schema (draft-7) of what people write, for editors: short forms are allowed, fields with
 * defaults are optional. It cannot express rules between fields.
 */
export function configJsonSchema(): Json {
  const schema = z.toJSONSchema(Config, { target: "draft-7", io: "input" }) as Json;
  const flows = (schema.oneOf ?? schema.anyOf) as Json[];
  for (const flow of flows) withShortForms(flow.properties as Record<string, Json>);
  const whole = { ...schema, title: "Holdfast configuration" };
  return withDefinitions(withoutNoise(whole) as Json);
}

/** Without undefined fields and a double's bounds of whole numbers, which tell people nothing. */
function withoutNoise(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNoise);
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value).filter(([, part]) =>
    part !== undefined && Math.abs(Number(part)) !== Number.MAX_SAFE_INTEGER
  );
  return Object.fromEntries(kept.map(([key, part]) => [key, withoutNoise(part)]));
}

/** The text of `configs/holdfast.schema.json`. */
export function configSchemaText(): string {
  return readableJson(configJsonSchema(), 100) + "\n";
}

/** The short forms that `short_forms.ts` expands. */
function withShortForms(fields: Record<string, Json>): void {
  if (fields.algorithm) fields.algorithm = algorithmBlock(fields.algorithm);
  const rewards = (list: Json) => oneOrMany(list, rewardEntry(list.items as Json));
  const path = { type: "string", description: "The file's path." };
  const sources = (list: Json) => oneOrMany(list, { anyOf: [path, list.items as Json] });
  if (fields.reward) fields.reward = rewards(fields.reward);
  const data = (fields.data?.properties ?? {}) as Record<string, Json>;
  for (const [part, list] of Object.entries(data)) {
    if (list.items === undefined) continue; // A setting of all sources.
    data[part] = sources(list);
  }
  if (fields.inputs) fields.inputs = sources(fields.inputs);
  const [decontaminate] = (fields.decontaminate?.anyOf ?? []) as Json[];
  const compared = decontaminate?.properties as Record<string, Json> | undefined;
  if (compared) compared.sets = sources(compared.sets!);
  const [evaluate] = (fields.evaluate?.anyOf ?? [fields.evaluate]) as (Json | undefined)[];
  const { sets } = (evaluate?.properties ?? {}) as Record<string, Json>;
  const set = (sets?.items as Json | undefined)?.properties as Record<string, Json> | undefined;
  if (set?.data) set.data = sources(set.data);
  if (set?.reward) {
    const [list, none] = set.reward.anyOf as Json[];
    set.reward = { ...set.reward, anyOf: [...rewards(list!).anyOf as Json[], none!] };
  }
}

const PYTHON_FILE = {
  type: "string",
  pattern: "\\.py$",
  description: "The path of a Python file.",
};

/** The settings of a Python file are next to its name; only the file knows them. */
function algorithmBlock(union: Json): Json {
  const names = namesOf(union).filter((name) => name !== "python");
  const python = optionsOf(union).find((option) => nameOf(option) === "python")!;
  const { source: _, ...fields } = python.properties as Json;
  const open = { ...python, additionalProperties: true };
  const named = { ...open, properties: { ...fields, name: PYTHON_FILE }, required: ["name"] };
  const others = optionsOf(union).filter((option) => option !== python);
  const { description, default: fallback } = union;
  const long = { description, default: fallback, anyOf: [...others, open, named] };
  const short = { anyOf: [{ type: "string", enum: names }, PYTHON_FILE] };
  return either(short, long);
}

const PYTHON = { type: "string", pattern: "\\.py:[A-Za-z_]\\w*$" };

function rewardEntry(entry: Json): Json {
  // The name alone is enough.
  const short = optionsOf(entry).filter(({ required }) => (required as string[]).length === 1);
  const names = short.map(nameOf);
  const python = { ...(optionsOf(entry).find((option) => nameOf(option) === "python") as Json) };
  const { source: _, ...fields } = python.properties as Json;
  // The same entry, with its function in place of a name.
  const named = {
    ...python,
    properties: { ...fields, name: { ...PYTHON, description: "`path.py:function`." } },
    required: ["name"],
  };
  const description = "A reward's name, or `path.py:function`.";
  return {
    anyOf: [
      { type: "string", enum: names, description },
      { ...PYTHON, description },
      named,
      ...optionsOf(entry),
    ],
  };
}

function oneOrMany(list: Json, entry: Json): Json {
  return either(entry, { ...list, items: entry });
}

function either(short: Json, long: Json): Json {
  const { description, default: fallback, ...rest } = long;
  return { description, default: fallback, anyOf: [short, rest] };
}

function optionsOf(union: Json): Json[] {
  return (union.oneOf ?? union.anyOf ?? [union]) as Json[];
}

function nameOf(option: Json): string {
  return String(((option.properties as Record<string, Json>).name as Json).const);
}

function namesOf(union: Json): string[] {
  return optionsOf(union).map(nameOf);
}
