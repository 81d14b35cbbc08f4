import { z } from "zod";

/** Fields of a block that have no description. Every field must have a default, too. */
export function undescribed(schema: z.ZodType): string[] {
  schema.parse({});
  const { properties } = z.toJSONSchema(schema, { io: "input" }) as {
    properties: Record<string, { description?: string }>;
  };
  return Object.entries(properties).flatMap(([name, field]) => field.description ? [] : [name]);
}
