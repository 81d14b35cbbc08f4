import { z } from "zod";
import type { DataPlace } from "../errors.ts";
import { kind } from "../rows/row_fields.ts";

/** What the values of a column are. A value may always be null. */
export type ColumnType =
  | { is: "null" | "boolean" | "integer" | "number" | "text" | "bytes" }
  | { is: "list"; item: ColumnType }
  | { is: "struct"; fields: Record<string, ColumnType> };

/** Schema of {@linkcode ColumnType}. */
export const ColumnType: z.ZodType<ColumnType> = z.lazy(() =>
  z.union([
    z.strictObject({ is: z.enum(["null", "boolean", "integer", "number", "text", "bytes"]) }),
    z.strictObject({ is: z.literal("list"), item: ColumnType }),
    z.strictObject({ is: z.literal("struct"), fields: z.record(z.string(), ColumnType) }),
  ])
);

/** Two values of one column that no type has both of. `field`: where, inside the row. */
export class TypeClash extends Error {
  constructor(readonly field: string, readonly types: [ColumnType, ColumnType]) {
    super(`${field} is ${types.map(({ is }) => is).join(" and ")}`);
    this.name = "TypeClash";
  }
}

/** Fields of one struct: more are keys, not fields, and each would be a column of every row. */
const FIELDS_MAX = 256;

/** The type of a value as JSON has it; bytes are `{ base64 }`. */
export function typeOf(value: unknown, field = ""): ColumnType {
  switch (typeof value) {
    case "boolean":
      return { is: "boolean" };
    case "number":
      return { is: Number.isSafeInteger(value) ? "integer" : "number" };
    case "string":
      return { is: "text" };
    case "object":
      return value === null ? { is: "null" } : typeOfObject(value, field);
  }
  throw new TypeError(`Cannot keep ${field} because it is ${kind(value)}`);
}

function typeOfObject(value: object, field: string): ColumnType {
  if (Array.isArray(value)) {
    const item = value.map((one) => typeOf(one, field)).reduce(
      (all: ColumnType, one) => unified(all, one, field),
      { is: "null" },
    );
    return { is: "list", item };
  }
  const names = Object.keys(value);
  if (names.length === 1 && typeof (value as { base64?: unknown }).base64 === "string") {
    return { is: "bytes" };
  }
  const fields = Object.entries(value).map(([name, one]): [string, ColumnType] => [
    name,
    typeOf(one, inside(field, name)),
  ]);
  // A struct without fields cannot be written.
  return fields.length === 0 ? { is: "null" } : structOf(fields, field);
}

function structOf(fields: [string, ColumnType][], field: string): ColumnType {
  if (fields.length > FIELDS_MAX) {
    throw new RangeError(
      `${field || "the row"} has more than ${FIELDS_MAX} different fields; keep one of them, as ` +
        "`keep: { name: a.b }`",
    );
  }
  return { is: "struct", fields: Object.fromEntries(fields) };
}

function inside(field: string, name: string): string {
  return field === "" ? name : `${field}.${name}`;
}

/** The type of a column that has values of both types. @throws {TypeClash} If there is none. */
export function unified(a: ColumnType, b: ColumnType, field = ""): ColumnType {
  if (a.is === "null") return b;
  if (b.is === "null") return a;
  if (a.is === "list" && b.is === "list") {
    return { is: "list", item: unified(a.item, b.item, field) };
  }
  if (a.is === "struct" && b.is === "struct") {
    const names = new Set([...Object.keys(a.fields), ...Object.keys(b.fields)]);
    const none: ColumnType = { is: "null" };
    const both = [...names].map((name): [string, ColumnType] => [
      name,
      unified(a.fields[name] ?? none, b.fields[name] ?? none, inside(field, name)),
    ]);
    return structOf(both, field);
  }
  if (a.is === b.is) return a;
  const numbers = ["integer", "number"];
  if (numbers.includes(a.is) && numbers.includes(b.is)) return { is: "number" };
  throw new TypeClash(field, [a, b]);
}

/** The type of each column, and the first row that says so. */
export type ColumnTypes = Record<string, { type: ColumnType; place: DataPlace }>;

/** What a type is called in a sentence. */
const NAMES: Record<ColumnType["is"], string> = {
  null: "null",
  boolean: "true or false",
  integer: "a whole number",
  number: "a number",
  text: "text",
  bytes: "bytes",
  list: "a list",
  struct: "an object",
};

/** What a clash says of the row where it shows. */
export function clashText({ types: [before, now] }: TypeClash, first: DataPlace): string {
  const row = first.line === undefined ? ` row ${first.row}` : `:${first.line}`;
  return `the column is ${NAMES[now.is]} here and ${NAMES[before.is]} in ${first.file}${row}; ` +
    "a column has one type: correct the row, or do not keep the column";
}
