import { z } from "zod";
import { saidOf, type SettingFacts } from "../data/mod.ts";
import { Config } from "./schema.ts";

/** @internal */
type Json = Record<string, unknown>;

/**
 * The JSON Schema (draft-7) of what people write, for editors: short forms are allowed, fields with
 * defaults are optional. It cannot express rules between fields. The facts of a setting have keys
 * with `x-`; those of a block hold for everything in it.
 */
export function configJsonSchema(): Json {
  const schema = z.toJSONSchema(Config, {
    target: "draft-7",
    io: "input",
    override: ({ zodSchema, jsonSchema }) =>
      void Object.assign(jsonSchema, factKeys(saidOf(zodSchema as unknown as z.ZodType))),
  }) as Json;
  const definitions: Record<string, Json> = {};
  const flows = (schema.oneOf ?? schema.anyOf) as Json[];
  for (const flow of flows) withShortForms(flow.properties as Record<string, Json>, definitions);
  return dropSafeBounds({ ...schema, title: "Holdfast configuration", definitions }) as Json;
}

function factKeys({ unit, numerics, fork, resume }: Partial<SettingFacts>): Json {
  const said = { unit, numerics, fork, resume };
  return Object.fromEntries(
    Object.entries(said).flatMap(([name, fact]) => fact === undefined ? [] : [[`x-${name}`, fact]]),
  );
}

/** Without the bounds of a double's whole numbers, which say nothing to people. */
function dropSafeBounds(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(dropSafeBounds);
  if (value === null || typeof value !== "object") return value;
  const kept = Object.entries(value).filter(([, part]) =>
    Math.abs(Number(part)) !== Number.MAX_SAFE_INTEGER
  );
  return Object.fromEntries(kept.map(([key, part]) => [key, dropSafeBounds(part)]));
}

/** The text of `configs/holdfast.schema.json`. */
export function configSchemaText(): string {
  return JSON.stringify(configJsonSchema(), null, 2) + "\n";
}

/** The short forms that `short_forms.ts` expands. */
function withShortForms(fields: Record<string, Json>, definitions: Record<string, Json>): void {
  if (fields.algorithm) fields.algorithm = algorithmBlock(fields.algorithm);
  const entry = (name: string, schema: Json) => {
    definitions[name] = schema;
    return { $ref: `#/definitions/${name}` };
  };
  const rewards = (list: Json) => oneOrMany(list, entry("reward", rewardEntry(list.items as Json)));
  const path = { type: "string", description: "The file's path." };
  const sources = (list: Json, name = "source") =>
    oneOrMany(list, entry(name, { anyOf: [path, list.items as Json] }));
  if (fields.reward) fields.reward = rewards(fields.reward);
  const data = (fields.data?.properties ?? {}) as Record<string, Json>;
  for (const [part, list] of Object.entries(data)) {
    if (list.items === undefined) continue; // A setting of all sources.
    data[part] = sources(list, part === "train" ? "training_source" : "source");
  }
  if (fields.inputs) fields.inputs = sources(fields.inputs, "prepared_source");
  const [decontaminate] = (fields.decontaminate?.anyOf ?? []) as Json[];
  const compared = decontaminate?.properties as Record<string, Json> | undefined;
  if (compared) compared.sets = sources(compared.sets!, "compared_source");
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
  return {
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
    anyOf: [short, rest],
  };
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
