/**
 * What differs between two configurations of one schema, and which of it a resume may change, as
 * its settings say.
 */
import { z } from "zod";
import { declaredFacts, type SettingFacts } from "../../data/mod.ts";
import { canonicalJson } from "../../engine/mod.ts";
import { setAt, stepsOf } from "./overrides.ts";
import { bare, optionsOf } from "./schema_walk.ts";
import { settingsOf } from "./settings_of.ts";
import { isFields } from "../short_forms.ts";

type ReadBy = "workers" | "stages";

const /** @internal */ settingChangeSchema = z.strictObject({
  path: z.string().describe("The path of the setting: workers.port, reward.0.timeout_ms."),
  read_by: z.enum(["workers", "stages"]).describe(
    "What receives the new value; for workers, the graph keeps the old one.",
  ),
  from: z.unknown().optional(),
  to: z.unknown().optional(),
});
/** A setting that a resume has changed, as its run records it. An absent value was not set. */
export type SettingChange = z.infer<typeof settingChangeSchema>;
/** Schema of {@linkcode SettingChange}. */
export const SettingChange: typeof settingChangeSchema = settingChangeSchema;

/** A setting that differs. `read_by` is null if a resume may not change it. */
type ChangedSetting = Omit<SettingChange, "read_by"> & { read_by: ReadBy | null };

type Sides = { path: string; from: unknown; to: unknown; read_by: ReadBy | null };

/** The settings in which `to` differs from `from`, both resolved by the schema. */
export function settingChanges(
  schema: z.ZodType,
  { from, to }: { from: unknown; to: unknown },
): ChangedSetting[] {
  return changesIn(schema, { path: "", from, to, read_by: null });
}

function changesIn(
  schema: z.ZodType | undefined,
  { path, from, to, read_by }: Sides,
): ChangedSetting[] {
  if (text(from) === text(to)) return [];
  const resume = schema && declaredFacts(schema).resume;
  const may = resume === undefined ? read_by : readBy(resume);
  const below = (name: string | number, inner: z.ZodType | undefined) =>
    changesIn(inner, {
      path: path === "" ? String(name) : `${path}.${name}`,
      from: (from as Record<string, unknown>)[name],
      to: (to as Record<string, unknown>)[name],
      read_by: may,
    });
  const here = schema && optionAt(bare(schema), { from, to });
  if (here instanceof z.ZodObject && isFields(from) && isFields(to)) {
    const names = new Set([...Object.keys(from), ...Object.keys(to)]);
    return [...names].sort().flatMap((name) =>
      below(name, here.shape[name] as z.ZodType | undefined)
    );
  }
  if (
    here instanceof z.ZodArray && here.element instanceof z.ZodDiscriminatedUnion &&
    isPair(from, to)
  ) {
    return from.flatMap((_, i) => below(i, here.element as z.ZodType));
  }
  return [{
    path,
    read_by: may,
    ...(from !== undefined && { from }),
    ...(to !== undefined && { to }),
  }];
}

/** The option of a union that both sides use; the union itself if they use different ones. */
function optionAt(schema: z.ZodType, { from, to }: { from: unknown; to: unknown }): z.ZodType {
  if (!(schema instanceof z.ZodDiscriminatedUnion) || !isFields(from) || !isFields(to)) {
    return schema;
  }
  const name = schema.def.discriminator;
  const option = from[name] === to[name] ? optionsOf(schema).get(String(from[name])) : undefined;
  return option ?? schema;
}

function isPair(from: unknown, to: unknown): from is unknown[] {
  return Array.isArray(from) && Array.isArray(to) && from.length === to.length;
}

function text(value: unknown): string {
  return value === undefined ? "" : canonicalJson(value);
}

/**
 * The settings of a schema that a resume may change, as people write them; `*` is a place in a
 * list.
 */
export function changeable(schema: z.ZodType): { path: string; read_by: ReadBy }[] {
  const found = settingsOf(schema).flatMap(({ path, block, facts }) => {
    const read_by = readBy(facts.resume);
    return block || read_by === null ? [] : [{ path, read_by }];
  });
  return [...new Map(found.map((one) => [one.path, one])).values()];
}

/** What reads the new value of a setting that a resume may change; null: it may not. */
function readBy(resume: SettingFacts["resume"] | undefined): ReadBy | null {
  return resume === "workers" || resume === "stages" ? resume : null;
}

/** A configuration with these changes, in their order. */
export function withSettings<Config>(config: Config, changes: readonly SettingChange[]): Config {
  return changes.reduce<unknown>(
    (before, { path, to }) => setAt(before, { path: stepsOf(path), to }),
    config,
  ) as Config;
}

/** A configuration from before these changes. */
export function withoutSettings<Config>(config: Config, changes: readonly SettingChange[]): Config {
  return withSettings(
    config,
    changes.toReversed().map((change) => ({ ...change, to: change.from })),
  );
}
