import { spelled } from "../exact_json.ts";
import { brokenText } from "../utf8_text.ts";

/** What a row lacks. `field` is a path inside the row. */
export class RowProblem extends Error {
  constructor(readonly field: string | undefined, message: string) {
    super(message);
    this.name = "RowProblem";
  }
}

export type Columns = Record<string, unknown>;

/**
 * @param field Of the row, if `value` is inside of it.
 * @throws {RowProblem} If a text inside of the value is not Unicode.
 */
export function refuseBroken(value: unknown, field?: string): void {
  const broken = brokenText(value);
  if (broken === null) return;
  const inside = field === undefined ? broken.path : [field, ...broken.path];
  throw new RowProblem(inside.join(".").toWellFormed(), broken.why);
}

/** The value of a field; `a.b` reads a nested field. */
export function read(columns: Columns, path: string): unknown {
  if (columns[path] !== undefined || !path.includes(".")) return columns[path];
  return path.split(".").reduce<unknown>(
    (part, key) => (part as Columns | null | undefined)?.[key],
    columns,
  );
}

/**
 * A field's text, or its number or truth value as text: a number in the digits of the file.
 * Undefined: it is nothing of these.
 */
export function readText(columns: Columns, path: string): string | undefined {
  const value = read(columns, path);
  if (typeof value === "boolean") return String(value);
  if (typeof value !== "number") return typeof value === "string" ? value : undefined;
  if (columns[path] !== undefined) return spelled(columns, path, value);
  const point = path.lastIndexOf(".");
  const around = read(columns, path.slice(0, point)) as Columns;
  return spelled(around, path.slice(point + 1), value);
}

/** A value's type, as errors name it. */
export function kind(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (isImage(value)) return "an image (only text can be used: remove the row)";
  if (Array.isArray(value)) {
    const images = value.some(isImage);
    return images ? "a list with an image (only text can be used: remove the row)" : "a list";
  }
  if (typeof value === "object") return "an object";
  return typeof value === "string"
    ? `the text ${JSON.stringify(value.slice(0, 40))}`
    : `${typeof value} ${value}`;
}

/** An image as `datasets` keeps it in Parquet, or as a part of a message. */
function isImage(value: unknown): boolean {
  if (value === null || typeof value !== "object") return false;
  const { type, bytes, base64, image_url } = value as Columns;
  return (typeof type === "string" && /image/.test(type)) || image_url !== undefined ||
    base64 !== undefined || (typeof bytes === "object" && bytes !== null);
}

/** The fields of a row that are not null, for an error. */
export function fieldsOf(columns: Columns): string {
  const names = Object.keys(columns).filter((name) => columns[name] !== null);
  return names.map((name) => `'${name}'`).join(", ") || "no field";
}
