import { z } from "zod";

export type Path = readonly (string | number)[];

/** What is inside defaults and optionals. */
export function bare(schema: z.ZodType): z.ZodType {
  let inner = schema;
  while (
    inner instanceof z.ZodDefault || inner instanceof z.ZodPrefault ||
    inner instanceof z.ZodOptional ||
    inner instanceof z.ZodNullable
  ) {
    inner = inner.unwrap() as z.ZodType;
  }
  return inner;
}

/** The options of a union by the value of its discriminator. */
export function optionsOf(schema: z.ZodDiscriminatedUnion): Map<string, z.ZodObject> {
  const options = schema.options as unknown as z.ZodObject[];
  return new Map(options.map((option) => [literalOf(option, schema.def.discriminator), option]));
}

function literalOf(option: z.ZodObject, key: string): string {
  return String([...(option.shape[key] as z.ZodLiteral).values][0]);
}

/**
 * The schema at a path of a value; the value selects the member of a union. undefined if the schema
 * has no such path.
 */
export function schemaAt(
  schema: z.ZodType,
  { path, value }: { path: Path; value: unknown },
): z.ZodType | undefined {
  const here = chosen(bare(schema), value);
  if (path.length === 0 || here === undefined) return here;
  const [key, ...rest] = path;
  const next = { path: rest, value: child(value, key!) };
  if (here instanceof z.ZodObject) {
    const field = here.shape[String(key)] as z.ZodType | undefined;
    return field && schemaAt(field, next);
  }
  return here instanceof z.ZodArray ? schemaAt(here.element as z.ZodType, next) : undefined;
}

function chosen(schema: z.ZodType, value: unknown): z.ZodType | undefined {
  if (!(schema instanceof z.ZodDiscriminatedUnion)) return schema;
  return optionsOf(schema).get(String(child(value, schema.def.discriminator))) ?? schema;
}

/**
 * Every path of a schema's objects, as people write it (`trainer.optimizer.lr`). Lists and unions
 * are not entered.
 */
export function fieldPaths(schema: z.ZodType): string[] {
  const here = bare(schema);
  if (!(here instanceof z.ZodObject)) return [];
  return Object.entries(here.shape).flatMap(([key, field]) => [
    key,
    ...fieldPaths(field as z.ZodType).map((path) => `${key}.${path}`),
  ]);
}

/** The value at a path; undefined if there is none. */
export function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(child, value);
}

function child(value: unknown, key: string | number): unknown {
  return value !== null && typeof value === "object"
    ? (value as Record<string | number, unknown>)[key]
    : undefined;
}
