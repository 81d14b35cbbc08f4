/** What the stages of a preparation pass on: files, and parts of their rows as artifacts. */
import { z } from "zod";
import {
  ArtifactRef,
  ColumnType,
  type ColumnTypes,
  DataError,
  type DataPlace,
  hostPath,
  PreparedRow,
  type SourceFile,
  sourceFiles,
  type SourceInput,
} from "../../data/mod.ts";
import type { Context } from "../../engine/mod.ts";

/** A file of an input, as it was when the run started. */
export const InputFile = z.strictObject({
  file: z.int().describe("Its number among all files."),
  input: z.int().describe("The number of its source among the inputs."),
  name: z.string().describe("What the card and rows call it."),
  path: z.string().describe("Of a data set of the hub: its name on every host."),
  sha256: z.string(),
  bytes: z.int(),
});
/** @internal */
export type InputFile = z.infer<typeof InputFile>;

/** Why rows are dropped, in the order in which they are looked at. */
export const DROP_REASONS = [
  "unreadable",
  "mapped_to_nothing",
  "duplicate",
  "too_short",
  "too_long",
  "contaminated",
] as const;
export type DropReason = (typeof DROP_REASONS)[number];

/** Dropped rows by reason. */
export const Dropped = z.partialRecord(z.enum(DROP_REASONS), z.int().positive());
export type Dropped = z.infer<typeof Dropped>;

/** The counts of both. */
export function added(a: Dropped, b: Dropped): Dropped {
  const names = Object.keys({ ...a, ...b }) as DropReason[];
  return Object.fromEntries(
    names.toSorted().map((name) => [name, (a[name] ?? 0) + (b[name] ?? 0)]),
  );
}

/** A dropped row that the card names. */
export const DroppedRow = z.strictObject({
  file: z.string(),
  row: z.int(),
  reason: z.enum(DROP_REASONS),
  because: z.string(),
});
export type DroppedRow = z.infer<typeof DroppedRow>;

/** Of each part and reason, the card can name the first ones. */
const NAMED_MAX = 3;

/** Counts dropped rows, and keeps the first of each reason. */
export class Drops {
  readonly counts: Dropped = {};
  readonly named: DroppedRow[] = [];

  add({ because, ...dropped }: Omit<DroppedRow, "because"> & { because: string }): void {
    const { reason } = dropped;
    const count = this.counts[reason] = (this.counts[reason] ?? 0) + 1;
    if (count <= NAMED_MAX) this.named.push({ ...dropped, because });
  }
}

/** The first row that shows each column's type. */
const Place = z.strictObject({
  file: z.string(),
  line: z.int().optional(),
  row: z.int().optional(),
});
export const ColumnTypesRecord: z.ZodType<ColumnTypes> = z.record(
  z.string(),
  z.strictObject({ type: ColumnType, place: Place }),
);

/** Rows of a file that follow each other. */
export const Part = z.strictObject({
  id: z.string().describe("The number of its file, and its own in the file."),
  file: z.int(),
  rows: ArtifactRef.describe("JSON lines of prepared rows."),
  hashes: ArtifactRef.describe("Of each row, what is compared and its id: 32 bytes."),
  count: z.int(),
});
export type Part = z.infer<typeof Part>;

/** A part without the rows that are left out. */
export const ThinnedPart = Part.omit({ hashes: true }).extend({
  left_out: ArtifactRef.optional().describe("JSON: places of rows, in order; absent: none."),
  dropped: Dropped,
  named: z.array(DroppedRow),
  from: z.strictObject({ file: z.string(), counts: z.enum(["line", "row"]) }).describe(
    "What errors call its file, and what a row's number counts there.",
  ),
});
export type ThinnedPart = z.infer<typeof ThinnedPart>;

const encoder = new TextEncoder();

/** Rows as the bytes of a part. */
export function linesOfRows(rows: readonly PreparedRow[]): Uint8Array {
  return encoder.encode(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
}

/** The rows of a part in order, each with its length as JSON. */
export async function* rowsOfPart(
  { rows }: Pick<Part, "rows">,
  { artifacts }: Pick<Context, "artifacts">,
): AsyncGenerator<{ row: PreparedRow; characters: number; place: number }> {
  const text = new TextDecoder().decode(await artifacts.get(rows));
  let [from, place] = [0, 0];
  for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
    yield { row: JSON.parse(text.slice(from, end)), characters: end - from, place: place++ };
    from = end + 1;
  }
}

/** Places of rows that an artifact lists. */
export async function placesIn(
  ref: ArtifactRef | undefined,
  { artifacts }: Pick<Context, "artifacts">,
): Promise<Set<number>> {
  return new Set(ref === undefined ? [] : await artifacts.getJson(ref) as number[]);
}

/** Keeps places of rows; nothing for none. */
export async function placesKept(
  places: readonly number[],
  { artifacts }: Pick<Context, "artifacts">,
): Promise<{ left_out?: ArtifactRef }> {
  return places.length === 0 ? {} : { left_out: await artifacts.putJson(places) };
}

/** The file of an input as readers take it. */
export async function asSourceFile(
  { path }: Pick<InputFile, "path">,
  { format }: Pick<SourceInput, "format">,
): Promise<SourceFile> {
  const [file] = await sourceFiles({ path: hostPath(path), format });
  return file!;
}

/** A file without directories and without the endings that say its format. */
export function stemOf(path: string): string {
  const name = path.replace(/\/+$/, "").split("/").at(-1)!;
  return name.replace(/(\.(jsonl|ndjson|json|csv|parquet|arrow|gz|zst))+$/i, "");
}

/** A data error at a row, whose place has the name that the card uses. */
export function errorAt(problem: string, file: string, { line, row }: DataPlace): DataError {
  return new DataError(problem, { file, ...(line === undefined ? { row } : { line }) });
}
