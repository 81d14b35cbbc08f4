import { loadRows, type Row, type SourceInput } from "../data/mod.ts";
import { print, printJson } from "./output.ts";

/** `data preview FILE`: the first rows as the run would read them, and what looks wrong about them. */
export async function previewData(
  file: string,
  options: { json?: boolean; rows: number; source?: Partial<SourceInput> },
): Promise<void> {
  const table = await loadRows([{ ...options.source, path: file }]);
  const all = Array.from({ length: table.size }, (_, place) => table.row(place));
  const rows = all.slice(0, options.rows);
  const warnings = warningsOf(all);
  if (options.json) return printJson({ file, rows: table.size, digest: table.digest, preview: rows, warnings });
  print(`${file}: ${table.size} rows, digest ${table.digest.slice(0, 12)}`);
  for (const row of rows) print(describe(row));
  for (const warning of warnings) print(`warning: ${warning}`);
}

function warningsOf(rows: Row[]): string[] {
  const count = (holds: (row: Row) => boolean) => rows.filter(holds).length;
  const found: [number, string][] = [
    [
      count((row) => row.answer === undefined && row.completion === undefined),
      "rows have neither an answer nor a completion",
    ],
    [count((row) => row.answer !== undefined && row.answer.trim() === ""), "rows have an empty answer"],
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
    ...(row.completion === undefined ? [] : [`  completion  ${short(row.completion)}`]),
    ...(row.answer === undefined ? [] : [`  answer      ${short(row.answer)}`]),
    `  columns     ${Object.keys(row.columns).join(", ")}`,
  ].join("\n");
}
