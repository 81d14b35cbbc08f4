import {
  isPreference,
  loadRows,
  readJsonLines,
  type Row,
  type SourceInput,
} from "../../data/mod.ts";
import { print, printJson } from "../output.ts";
import { defineVerb } from "../verb.ts";
import { json, whole } from "../options.ts";

/** `data preview FILE`: the first rows as a run reads them, and what looks wrong about them. */
export const dataPreviewVerb = defineVerb({
  name: "data preview",
  about: "show rows as a run reads them",
  arguments: { "<file>": "rows: one JSON object per line" },
  options: { json, rows: whole("<n>", "number of rows", { short: "-n", default: 3 }) },
  action: ({ args, flags }) => previewData(args.file, flags),
});

async function previewData(
  file: string,
  options: { json?: boolean; rows: number; source?: Partial<SourceInput> },
): Promise<void> {
  const table = await loadRows([{ ...options.source, path: file }], await needsOf(file));
  const all = Array.from({ length: table.size }, (_, place) => table.row(place));
  const rows = all.slice(0, options.rows);
  const warnings = warningsOf(all);
  if (options.json) {
    return printJson({ file, rows: table.size, digest: table.digest, preview: rows, warnings });
  }
  print(`${file}: ${table.size} rows, digest ${table.digest.slice(0, 12)}`);
  for (const row of rows) print(describe(row));
  for (const warning of warnings) print(`warning: ${warning}`);
}

/**
 * A file whose first row has `chosen` and `rejected` is read as the preference flow would read it.
 */
async function needsOf(file: string): Promise<{ needs?: "preference" }> {
  for await (const { value } of readJsonLines(file)) {
    return isPreference(value) ? { needs: "preference" } : {};
  }
  return {};
}

function warningsOf(rows: Row[]): string[] {
  const count = (holds: (row: Row) => boolean) => rows.filter(holds).length;
  const found: [number, string][] = [
    [
      count((row) => row.answer === undefined && row.completion === undefined),
      "rows have neither an answer nor a completion",
    ],
    [
      count((row) => row.answer !== undefined && row.answer.trim() === ""),
      "rows have an empty answer",
    ],
    [count((row) => row.prompt.length === 0), "rows have an empty prompt"],
  ];
  return found.filter(([n]) => n > 0).map(([n, what]) => `${n} of ${rows.length} ${what}`);
}

function describe(row: Row): string {
  const short = (value: unknown) => {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    return text.length > 300 ? `${text.slice(0, 300)}... (${text.length} characters)` : text;
  };
  return [
    `- row_id      ${row.row_id}`,
    `  prompt      ${short(row.prompt)}`,
    ...completionLines(row, short),
    ...(row.answer === undefined ? [] : [`  answer      ${short(row.answer)}`]),
    `  columns     ${Object.keys(row.columns).join(", ")}`,
  ].join("\n");
}

function completionLines(
  { completion, rejected, margin }: Row,
  short: (value: unknown) => string,
): string[] {
  if (completion === undefined) return [];
  if (rejected === undefined) return [`  completion  ${short(completion)}`];
  const lead = margin === undefined ? [] : [`  margin      ${margin}`];
  return [`  chosen      ${short(completion)}`, `  rejected    ${short(rejected)}`, ...lead];
}
