import { createHash } from "node:crypto";
import type { IndexedFile } from "../rows/row_index.ts";
import { DataError } from "../errors.ts";
import { FileTable, stateOf } from "./file_table.ts";
import { indexRows, lineFiles, type ReadFile } from "./index_rows.ts";
import { nameContent } from "./json_lines.ts";
import { RowCache } from "../rows/row_cache.ts";
import { readIndex } from "../rows/row_index.ts";
import { ROW_SHAPES } from "../rows/row_shapes.ts";
import type { RowTable } from "../rows/row_table.ts";
import type { RowNeeds } from "../rows/source_row.ts";
import { SourceConfig, type SourceInput } from "../source_config.ts";
import { sourceFiles } from "./source_files.ts";

/** How sources are read. */
export type ReadOptions = {
  /** The home: what is derived from the files is kept in its `cache/rows`. */
  home: string;
  /**
   * What every row must have besides a prompt; `preference`: two completions, one of them better.
   */
  needs?: RowNeeds;
  /** Learns that something derived was damaged and is made again. */
  say?: (text: string) => void;
};

/** What a source turned out to contain: one entry per file. */
export type SourceSummary = {
  /** The file. */
  path: string;
  /** How it is read. */
  format: "json_lines" | "csv" | "parquet" | "arrow";
  /** How many rows it has, duplicates included. */
  rows: number;
  /**
   * The shapes of its rows, and the fields that tell each. `advice`: what a person should know
   * before using them as they are; absent if the source says how its fields are read.
   */
  shapes: { name: string; rows: number; fields: string[]; advice?: string }[];
};

/** A table of rows of files, and what each file contains. */
export type LoadedRows = RowTable & { readonly files: readonly SourceSummary[] };

/** Raise it when the same files give different rows or digests, or an index has a different form. */
const VERSION = 8;

/**
 * Opens sources as one table, in the order given. Every row is checked once: what an index in the
 * home knows is not read again. Rows are then read from their files by place, so memory does not
 * grow with them. Ids are unique over all sources: resume, the ledger and comparison name rows by
 * id.
 * @throws {DataError} At the first broken row, at a duplicate id, or if no row is left.
 */
export async function loadRows(
  sources: SourceInput[],
  { home, needs, say }: ReadOptions,
): Promise<LoadedRows> {
  const cache = new RowCache(home);
  const files = await filesOf(sources.map((source) => SourceConfig.parse(source)));
  const key = keyOf(files, needs);
  const index = cache.indexPath(key);
  const known = await readIndex(index, key);
  const whole = known !== null && known !== "damaged" &&
    known.files.length === files.length && await areUnpacked(known.files, cache);
  if (known !== null && !whole) {
    say?.(`${index} or what belongs to it is damaged: it is made again`);
  }
  const indexed = whole ? known : await indexRows(files, { cache, key, needs });
  const { size, digest } = indexed;
  const lines = lineFiles(files, indexed.files, { cache, needs });
  const summaries = files.map((file, i): SourceSummary => {
    const { rows, shapes } = indexed.files[i]!;
    const advised = shapes.map((shape) => ({ ...shape, ...adviceOn(shape.name, file.source) }));
    return { path: file.path, format: file.format.name, rows, shapes: advised };
  });
  const kept = sources.map(() => 0);
  for (const [i, { number }] of files.entries()) kept[number]! += indexed.files[i]!.kept;
  const table = new FileTable({ size, digest, index, files: lines });
  return Object.assign(table, { files: summaries, sources: kept });
}

function adviceOn(shape: string, { fields }: SourceConfig): { advice?: string } {
  const advice = ROW_SHAPES.find(({ name }) => name === shape)?.advice;
  return advice === undefined || Object.keys(fields).length > 0 ? {} : { advice };
}

async function filesOf(sources: SourceConfig[]): Promise<ReadFile[]> {
  const files: ReadFile[] = [];
  for (const [number, source] of sources.entries()) {
    for (const file of await sourceFiles(source)) {
      // Looked at first: a change while it is read shows when its rows are.
      const seen = await stateOf(file.path);
      const { content } = await nameContent(file.path);
      files.push({ ...file, seen, content, source, number });
    }
  }
  return files;
}

/** What determines an index: the content of the files, in order, and how they are read. */
function keyOf(files: ReadFile[], needs: RowNeeds | undefined): string {
  const read = files.map(({ source: { path: _, ...reading }, number, ...file }) => [
    number,
    file.format.name,
    file.compression,
    file.content,
    reading,
  ]);
  return createHash("sha256").update(JSON.stringify([VERSION, needs ?? null, read])).digest("hex");
}

/** Whether every file that an index needs in the cache is there, byte by byte. */
async function areUnpacked(known: IndexedFile[], cache: RowCache): Promise<boolean> {
  for (const { unpacked } of known) {
    if (unpacked === null) continue;
    try {
      const { content, bytes } = await nameContent(cache.unpackedPath(unpacked.content));
      if (content !== unpacked.content || bytes !== unpacked.bytes) return false;
    } catch (error) {
      if (error instanceof DataError) return false;
      throw error;
    }
  }
  return true;
}
