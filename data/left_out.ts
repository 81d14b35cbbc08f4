import { isDeepStrictEqual } from "node:util";
import { z } from "zod";

/**
 * What the absence of a field means in every record ever written: fixed permanently, regardless of
 * a setting's default today.
 */
const firstValues = z.registry<{ first: unknown }>();

/**
 * A field that a record omits while it has the value implied by all records from before the field
 * existed. Those records, and the hashes that name them, stay as they are; code always reads and
 * sends the field.
 *
 * ```ts
 * const Numerics = z.strictObject({ dtype: z.string(), packing: leftOut(z.boolean(), false) });
 * Numerics.parse({ dtype: "float32" }) // { dtype: "float32", packing: false }
 * recorded(Numerics, { dtype: "float32", packing: false })          // { dtype: "float32" }
 * ```
 */
export function leftOut<Type extends z.ZodType>(
  schema: Type,
  first: z.output<Type>,
): z.ZodDefault<Type> {
  const field = schema.default(first as never) as z.ZodDefault<Type>;
  firstValues.add(field, { first });
  return field;
}

/**
 * `value` as it is recorded: without fields that have their original value. Parsing with `schema`
 * restores them.
 */
export function recorded<Type extends z.ZodType>(
  schema: Type,
  value: z.output<Type>,
): z.input<Type> {
  return shortened(schema, value) as z.input<Type>;
}

function shortened(schema: z.ZodType, value: unknown): unknown {
  if (
    schema instanceof z.ZodDefault || schema instanceof z.ZodNullable ||
    schema instanceof z.ZodOptional
  ) {
    return value === null || value === undefined
      ? value
      : shortened(schema.unwrap() as z.ZodType, value);
  }
  if (schema instanceof z.ZodUnion) {
    const option = schema.options.find((one) => (one as z.ZodType).safeParse(value).success);
    return option === undefined ? value : shortened(option as z.ZodType, value);
  }
  if (!(schema instanceof z.ZodObject)) return value;
  const kept = Object.entries(value as Record<string, unknown>).flatMap(([name, field]) => {
    const of = schema.shape[name] as z.ZodType | undefined;
    if (of === undefined) return [[name, field]];
    const known = firstValues.get(of);
    return known && isDeepStrictEqual(field, known.first) ? [] : [[name, shortened(of, field)]];
  });
  return Object.fromEntries(kept);
}
