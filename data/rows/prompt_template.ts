import { spelled, spelledAs } from "../exact_json.ts";
import { type Columns, fieldsOf, kind, read, readText, RowProblem } from "./row_fields.ts";

/** Where a row has the prompt that a template makes. */
const TEMPLATED = "(template)";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
/** A doubled brace, or a field with what is made of it; else a brace that belongs to nothing. */
const PART = /\{\{|\}\}|\{\s*([^{}|\s](?:[^{}|]*[^{}|\s])?)\s*(?:\|\s*([^{}|]*?)\s*)?\}|[{}]/g;

/** Whether the setting of a prompt's field is a template, and not a name. */
export function isTemplate(prompt: string | undefined): prompt is string {
  return prompt !== undefined && /[{}]/.test(prompt);
}

/** The fields of a row that the setting of a prompt's field names. */
export function fieldsNamed(prompt: string): string[] {
  if (!isTemplate(prompt)) return [prompt];
  return [...prompt.matchAll(PART)].flatMap(([, field]) => field === undefined ? [] : [field]);
}

/** Why a text is no template; null: it is one. */
export function templateProblem(template: string): string | null {
  let fields = 0;
  for (const [part, field, form] of template.matchAll(PART)) {
    if (field === undefined) {
      if (part.length === 2) continue;
      const near = JSON.stringify(template.slice(0, 60));
      return `a brace in ${near} names no field; write {{ or }} for a brace of the text`;
    }
    if (form !== undefined && form !== "letters") {
      return `'{${field}|${form}}' asks for a form that is not known; the only one is ` +
        `{${field}|letters}`;
    }
    fields++;
  }
  return fields > 0 ? null : "it names no field, so every prompt would be the same: write {NAME}";
}

/**
 * A row with the prompt that a template makes of it, and the fields by which it is read; both as
 * they are if the prompt is a field of the row.
 * @throws {RowProblem} If the row lacks what the template names.
 */
export function withTemplate<Fields extends { prompt?: string }>(
  columns: Columns,
  fields: Fields,
): { columns: Columns; fields: Fields } {
  if (!isTemplate(fields.prompt)) return { columns, fields };
  const filled = fillTemplate(fields.prompt, columns);
  if (filled.trim() === "") {
    throw new RowProblem("prompt", "it is empty: the fields that its template names are");
  }
  return {
    columns: spelledAs(columns, { ...columns, [TEMPLATED]: filled }),
    fields: { ...fields, prompt: TEMPLATED },
  };
}

/**
 * Fills a template by a row's fields: `{name}` is a text or a number, `{a.b}` a nested one,
 * `{options|letters}` a list with a capital letter before each entry, one per line; `{{` and `}}`
 * are braces.
 * @throws {RowProblem} If the row lacks a field, or a field is neither.
 * @example
 * ```ts
 * const row = { question: "Which is even?", choices: [1, 2] };
 * strictEqual(fillTemplate("{question}\n{choices|letters}", row), "Which is even?\nA. 1\nB. 2");
 * ```
 */
export function fillTemplate(template: string, columns: Columns): string {
  return template.replace(PART, (part, field?: string, form?: string) => {
    if (field === undefined) return part[0]!;
    const value = read(columns, field) ?? undefined;
    if (value === undefined) {
      throw new RowProblem(
        field,
        `the row has no '${field}' for the template (it has ${fieldsOf(columns)})`,
      );
    }
    return form === undefined ? oneText(columns, { field, value }) : lettered(field, value);
  });
}

function oneText(columns: Columns, { field, value }: { field: string; value: unknown }): string {
  const text = typeof value === "boolean" ? undefined : readText(columns, field);
  if (text !== undefined) return text;
  const fix = Array.isArray(value)
    ? `write {${field}.0} for one entry, or {${field}|letters} for a list of options`
    : `name a field inside it: {${field}.NAME}`;
  throw new RowProblem(
    field,
    `expected a text or a number for the template, got ${kind(value)}; ${fix}`,
  );
}

function lettered(field: string, value: unknown): string {
  const list = Array.isArray(value) ? value : [];
  const options = list.map((_, i) => optionAt(list, i));
  const broken = options.indexOf(undefined);
  if (options.length === 0 || options.length > LETTERS.length || broken >= 0) {
    const got = !Array.isArray(value)
      ? kind(value)
      : broken < 0
      ? `a list of ${list.length}`
      : `a list with ${kind(list[broken])}`;
    throw new RowProblem(
      field,
      `expected a list of 1 to ${LETTERS.length} texts for {${field}|letters}, got ${got}`,
    );
  }
  return options.map((option, i) => `${LETTERS[i]}. ${option}`).join("\n");
}

function optionAt(list: unknown[], i: number): string | undefined {
  const option = list[i];
  if (typeof option === "string") return option;
  return typeof option === "number" ? spelled(list, String(i), option) : undefined;
}
