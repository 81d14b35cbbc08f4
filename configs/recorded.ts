import { z } from "zod";
import { saidOf } from "../data/mod.ts";
import { isFields } from "./short_forms.ts";
import { bare, optionsOf } from "./schema_walk.ts";

/**
 * A recorded configuration with what its absent settings meant then (`before`). The schema
 * fills in settings whose default is unchanged. Returns a new value, which is equal if nothing is
 * absent.
 */
export function restoreRecorded(schema: z.ZodType, recorded: unknown): unknown {
  const here = bare(schema);
  if (here instanceof z.ZodArray && Array.isArray(recorded)) {
    return recorded.map((entry) => restoreRecorded(here.element as z.ZodType, entry));
  }
  if (!isFields(recorded)) return recorded;
  if (here instanceof z.ZodDiscriminatedUnion) {
    const option = optionsOf(here).get(String(recorded[here.def.discriminator]));
    return option ? restoreRecorded(option, recorded) : recorded;
  }
  if (here instanceof z.ZodUnion) {
    const option = (here.options as z.ZodType[]).find((one) => one.safeParse(recorded).success);
    return option ? restoreRecorded(option, recorded) : recorded;
  }
  return here instanceof z.ZodObject ? restoreFields(here, recorded) : recorded;
}

function restoreFields(
  schema: z.ZodObject,
  recorded: Record<string, unknown>,
): Record<string, unknown> {
  const out = { ...recorded };
  for (const [name, field] of Object.entries(schema.shape) as [string, z.ZodType][]) {
    const { before } = saidOf(field);
    if (name in out) out[name] = restoreRecorded(field, out[name]);
    else if (before) out[name] = before.value;
    else if (field instanceof z.ZodPrefault) {
      // The block did not exist either: its settings have their meaning of that time.
      const block = restoreRecorded(field, {});
      if (Object.keys(block as object).length > 0) out[name] = block;
    }
  }
  return out;
}
