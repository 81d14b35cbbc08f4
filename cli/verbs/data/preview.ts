import {
  firstRows,
  type Prompt,
  type Row,
  ROW_SHAPES,
  rowAnswer,
  rowChunks,
  type RowTable,
  type SourceSummary,
  wholeMessage,
} from "../../../data/mod.ts";
import { type NamedRows, namedRows } from "../../../runs/mod.ts";
import { ARGUMENTS } from "../../arguments.ts";
import { print, printJson, tell } from "../../display/output.ts";
import { defineVerb } from "../../verb.ts";
import { json, whole } from "../../options.ts";

/** `data preview FILE`: the first rows as a run reads them, and what looks wrong about them. */
export const dataPreviewVerb = defineVerb({
  name: "data preview",
  about: "show rows as a run reads them",
  arguments: {
    "<file>":
      "rows: a file, a directory, a pattern in quotes or hf://datasets/...; or a configuration",
    "[overrides...]": ARGUMENTS.overrides,
  },
  options: { json, rows: whole("<n>", "number of rows", { short: "-n", default: 3 }) },
  async action({ args: { file, overrides }, flags, globals: { home } }) {
    const previews = await Promise.all(
      (await namedRows(file, { home, overrides, say: tell })).map((named) =>
        preview(named, flags.rows)
      ),
    );
    if (flags.json) {
      const [{ split, ...only }] = previews as [Preview, ...Preview[]];
      return printJson({ file, ...(split === null ? only : { splits: previews }) });
    }
    for (const { split, rows, digest, files, preview, warnings } of previews) {
      print(`${split ?? file}: ${counted(rows)}, digest ${digest.slice(0, 12)}`);
      for (const one of files) print(shapeLines(one));
      for (const row of preview) print(describe(row));
      for (const warning of warnings) print(`warning: ${warning}`);
    }
  },
});

/** What is shown of one table of rows. */
type Preview = Awaited<ReturnType<typeof preview>>;

async function preview({ split, table }: NamedRows, count: number) {
  const { size: rows, digest, files = [] } = table;
  const preview = await firstRows(table, count);
  return { split, rows, digest, files, preview, warnings: await warningsOf(table) };
}

/** A file, the shape of its rows, and the fields that told it. */
function shapeLines({ path, format, rows, shapes }: SourceSummary): string {
  const lines = shapes.map(({ name, fields, rows, advice }) => {
    const from = ROW_SHAPES.find((shape) => shape.name === name)?.from;
    const whose = from === undefined ? "" : ` (${from})`;
    const shapeLine = `  shape       ${name}${whose}, because of ${fields.join(", ")}: ${
      counted(rows)
    }`;
    return advice === undefined ? shapeLine : `${shapeLine}\n  advice      ${advice}`;
  });
  return [`- file        ${path} (${format}, ${counted(rows)})`, ...lines].join("\n");
}

function counted(rows: number): string {
  return rows === 1 ? "1 row" : `${rows} rows`;
}

const ODDITIES: [what: string, holds: (row: Row) => boolean][] = [
  [
    "rows have neither an answer nor a completion",
    ({ columns, answer, completion }) => (answer ?? completion ?? rowAnswer(columns)) === undefined,
  ],
  ["rows have an empty answer", (row) => row.answer !== undefined && row.answer.trim() === ""],
];

async function warningsOf(table: RowTable): Promise<string[]> {
  const counts = ODDITIES.map(() => 0);
  for await (const { rows } of rowChunks(table)) {
    for (const [i, [, holds]] of ODDITIES.entries()) counts[i]! += rows.filter(holds).length;
  }
  return ODDITIES.flatMap(([what], i) =>
    counts[i] ? [`${counts[i]} of ${table.size} ${what}`] : []
  );
}

function describe(row: Row): string {
  const short = (value: Prompt) => {
    const text = typeof value === "string" ? value : JSON.stringify(value.map(wholeMessage));
    return text.length > 300 ? `${text.slice(0, 300)}... (${text.length} characters)` : text;
  };
  return [
    `- row_id      ${row.row_id}`,
    ...(row.tools === undefined ? [] : [`  tools       ${short(row.tools)}`]),
    `  prompt      ${short(row.prompt)}`,
    ...completionLines(row, short),
    ...(row.answer === undefined ? [] : [`  answer      ${short(row.answer)}`]),
    `  columns     ${Object.keys(row.columns).join(", ")}`,
  ].join("\n");
}

function completionLines(
  { completion, rejected, margin, label }: Row,
  short: (value: Prompt) => string,
): string[] {
  if (completion === undefined) return [];
  if (rejected === undefined) {
    const labelLines = label === undefined ? [] : [`  label       ${label}`];
    return [`  completion  ${short(completion)}`, ...labelLines];
  }
  const lead = margin === undefined ? [] : [`  margin      ${margin}`];
  return [`  chosen      ${short(completion)}`, `  rejected    ${short(rejected)}`, ...lead];
}
