import { z } from "zod";
import { declaredFacts, inside, type SettingFacts } from "../../data/mod.ts";
import { bare, optionsOf } from "./schema_walk.ts";

/** A setting, or a block of settings. */
export type Setting = {
  /** As people write it; `*` is a place in a list. */
  path: string;
  schema: z.ZodType;
  /** Whether settings are inside it. */
  block: boolean;
  /** Declared at its own place. */
  declared: Partial<SettingFacts>;
  /** Those of its blocks too. */
  facts: Partial<SettingFacts>;
  /** What it is named by in a list or a choice: `grpo` of an algorithm's settings. */
  option?: string;
};

type Place = { path: string; facts: Partial<SettingFacts>; option?: string };

/** What is known of a schema, which never changes: a walk takes milliseconds, and a fork needs many. */
const KNOWN = new WeakMap<z.ZodType, readonly Setting[]>();

/** Every setting and block of a schema with its facts, a block before what is inside it. */
export function settingsOf(schema: z.ZodType): readonly Setting[] {
  const known = KNOWN.get(schema) ?? below(schema, { path: "", facts: {} });
  KNOWN.set(schema, known);
  return known;
}

function below(schema: z.ZodType, { path, facts, option }: Place): Setting[] {
  const here = bare(schema);
  const named = (name: string) => path === "" ? name : `${path}.${name}`;
  if (here instanceof z.ZodObject) {
    return Object.entries(here.shape).flatMap(([name, field]) =>
      settingAt(field as z.ZodType, { path: named(name), facts, option })
    );
  }
  if (here instanceof z.ZodDiscriminatedUnion) {
    return [...optionsOf(here)].flatMap(([name, one]) =>
      below(one, { path, facts: inside(facts, one), option: name === "" ? option : name })
    );
  }
  const entry = here instanceof z.ZodArray ? here.element as z.ZodType : undefined;
  return entry === undefined
    ? []
    : below(entry, { path: named("*"), facts: inside(facts, entry), option });
}

function settingAt(schema: z.ZodType, { path, facts, option }: Place): Setting[] {
  const place = { path, facts: inside(facts, schema), option };
  const inner = below(schema, place);
  return [{ ...place, schema, block: inner.length > 0, declared: declaredFacts(schema) }, ...inner];
}
