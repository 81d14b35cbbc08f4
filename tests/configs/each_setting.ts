/** Every setting of a configuration, and other values for each: what tests change alone. */
import { z } from "zod";
import { bare, optionsOf } from "../../configs/settings/schema_walk.ts";

export type Leaf = { path: string[]; schema: z.ZodType; value: unknown };

const isFields = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === "object" && !Array.isArray(value);

/** The settings of a resolved value, those of blocks, of lists of blocks and of options too. */
export function leaves(schema: z.ZodType, value: unknown, path: string[] = []): Leaf[] {
  const here = bare(schema);
  if (here instanceof z.ZodObject && isFields(value)) {
    return Object.entries(here.shape).flatMap(([name, field]) =>
      leaves(field as z.ZodType, value[name], [...path, name])
    );
  }
  if (here instanceof z.ZodDiscriminatedUnion && isFields(value)) {
    const option = optionsOf(here).get(String(value[here.def.discriminator]));
    return option === undefined ? [] : leaves(option, value, path);
  }
  if (here instanceof z.ZodArray && Array.isArray(value) && value.some(isFields)) {
    return value.flatMap((one, i) => leaves(here.element as z.ZodType, one, [...path, String(i)]));
  }
  return [{ path, schema, value }];
}

/** Values to try, in this order, where a type alone suggests none. */
const OTHERS = [
  true,
  3,
  0.5,
  "other",
  [3],
  ["###"],
  [0.5, 0.6],
  { rank: 2 },
  { x: 1 },
  "linear",
  "nf4",
];

function candidates(value: unknown): unknown[] {
  if (typeof value === "boolean") return [!value];
  if (typeof value === "number") return [value + 1, value / 2, value * 2, ...OTHERS];
  return OTHERS;
}

/** Values of the schema that are not `value`: none, if it has one value or these do not fit. */
export function otherValues({ schema, value }: Pick<Leaf, "schema" | "value">): unknown[] {
  const inner = bare(schema);
  const named = inner instanceof z.ZodEnum
    ? inner.options.filter((option) => option !== value).toReversed()
    : [];
  return [...named, ...candidates(value)].filter((one) => {
    const read = schema.safeParse(one);
    return read.success && JSON.stringify(read.data) !== JSON.stringify(value);
  });
}

/** `config` with another value at a path. */
export function changedAt<T>(config: T, [name, ...rest]: readonly string[], value: unknown): T {
  if (name === undefined) return value as T;
  const copy = Array.isArray(config) ? [...config] : { ...config as object };
  const fields = copy as Record<string, unknown>;
  fields[name] = changedAt(fields[name], rest, value);
  return copy as T;
}
