import { z } from "zod";
import { spelledAs } from "../exact_json.ts";
import { type Columns, read } from "./row_fields.ts";
import { GSM8K_REPAIRS } from "./gsm8k_repairs.ts";

/** A row of a data set that is wrong, and what is right. */
const Repair = z.strictObject({
  where: z.record(z.string().min(1), z.union([z.string(), z.number(), z.boolean()])).refine(
    (where) => Object.keys(where).length > 0,
    "must name a field of the row",
  ).describe("Fields that tell the row, with their whole values; `a.b` reads a nested field."),
  set: z.record(z.string().min(1), z.unknown()).refine(
    (set) => Object.keys(set).length > 0,
    "must set a field of the row",
  ).describe("Fields that get other values."),
});
type Repair = z.infer<typeof Repair>;

/** Lists of repairs by the names of their data sets. */
const LISTS = { gsm8k: GSM8K_REPAIRS } satisfies Record<string, readonly Repair[]>;

const NAMES = Object.keys(LISTS) as [keyof typeof LISTS];

/** What a source's rows are repaired by: a list that ships, or the user's. */
export const Repairs = z.union([
  z.enum(NAMES),
  z.array(Repair).min(1),
], {
  error: `must be ${
    NAMES.join(" or ")
  }, or a list of { where: { FIELD: VALUE }, set: { FIELD: VALUE } }`,
});
export type Repairs = z.infer<typeof Repairs>;

/** The repairs that a setting stands for. */
export function repairsOf(repairs: Repairs): readonly Repair[] {
  return typeof repairs === "string" ? LISTS[repairs] : repairs;
}

/** The place of the first repair that is for a row; -1: none is. */
export function repairFor(columns: Columns, repairs: Repairs): number {
  return repairsOf(repairs).findIndex(({ where }) =>
    Object.entries(where).every(([field, value]) => read(columns, field) === value)
  );
}

/** A row with the fields that the first repair for it sets; as it is if none is for it. */
export function repaired(columns: Columns, repairs: Repairs | undefined): Columns {
  const found = repairs === undefined ? -1 : repairFor(columns, repairs);
  if (found < 0) return columns;
  return spelledAs(columns, { ...columns, ...repairsOf(repairs!)[found]!.set });
}

/**
 * Why repairs do not belong to a source; null: they do. Each of a user's is for a row; of a list
 * that ships at least one is, as it has the rows of all splits. `used`: places of those that were for a row.
 */
export function repairsProblem(repairs: Repairs, used: ReadonlySet<number>): string | null {
  if (typeof repairs === "string") {
    return used.size > 0
      ? null
      : `none of its rows is one that \`repairs: ${repairs}\` repairs; leave the setting out`;
  }
  const place = repairs.findIndex((_, i) => !used.has(i));
  if (place < 0) return null;
  const where = JSON.stringify(repairs[place]!.where);
  return `\`repairs.${place}\` is for no row, as none has ${
    where.length > 200 ? `${where.slice(0, 200)}...` : where
  }; correct or remove it`;
}
