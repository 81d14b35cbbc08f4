import type { Hash } from "node:crypto";
import { contentHash, contentName } from "./content_hash.ts";
import { type DuplicateId, DuplicateIds } from "./duplicate_ids.ts";
import { DataError, type DataPlace } from "../errors.ts";
import { type FileState, FileTable, hasChanged, type LineFile } from "./file_table.ts";
import { blocksOf, type LineBlock, lineBlocks, rowsIn } from "./json_lines.ts";
import { removeFile, type RowCache } from "../rows/row_cache.ts";
import {
  type IndexedFile,
  type IndexFooter,
  readEntries,
  RowIndexWriter,
} from "../rows/row_index.ts";
import { shapeFields, shapeOf } from "../rows/row_shapes.ts";
import type { SourceConfig } from "../source_config.ts";
import type { SourceFile } from "./source_files.ts";
import { repairFor, repairsProblem } from "../rows/repairs.ts";
import { readRow, type RowNeeds } from "../rows/source_row.ts";
import { isUnpacked, UnpackedFile } from "./unpacked_file.ts";

/** A file of a source, as it was when it was opened. `content`: its hash; `number`: of its source. */
export type ReadFile = SourceFile & {
  seen: FileState;
  content: string;
  source: SourceConfig;
  number: number;
};

/** How the rows of files are read, and where an index of them goes. */
type Options = { cache: RowCache; key: string; needs?: RowNeeds };

const COPIED_ROWS = 4096;

/**
 * Reads every row of these files once, checks it, and writes the index that finds it again. Memory
 * does not grow with the number of rows.
 * @throws {DataError} At the first broken row, at a duplicate id, or if no row is left.
 */
export async function indexRows(files: ReadFile[], options: Options): Promise<IndexFooter> {
  options.cache.prepare();
  const pass = new IndexPass(files, options);
  try {
    return await pass.run();
  } finally {
    pass.close();
  }
}

/** Files as a table reads them. `indexed`: what an index knows of each. */
export function lineFiles(
  files: readonly ReadFile[],
  indexed: readonly IndexedFile[],
  { cache, needs }: Pick<Options, "cache" | "needs">,
): LineFile[] {
  return files.map((file, i) => ({
    named: file.path,
    counts: file.format.counts,
    path: pathOf(file, indexed[i]!, cache),
    seen: isUnpacked(file) ? null : file.seen,
    read: (columns) => readRow(columns, { source: file.source, place: { file: file.path }, needs }),
  }));
}

/** Where the lines of a file are. */
function pathOf({ path }: ReadFile, { unpacked }: IndexedFile, cache: RowCache): string {
  return unpacked === null ? path : cache.unpackedPath(unpacked.content);
}

/** How far a file is read. `number`: of the file among all. `rows_max`: where reading it ends. */
type Reading = {
  file: ReadFile;
  number: number;
  rows: number;
  rows_max: number;
  shapes: Map<string, { rows: number; fields: string[] }>;
};

/** One reading of all files. */
class IndexPass {
  readonly #files: ReadFile[];
  readonly #options: Options;
  readonly #path: string;
  readonly #index: RowIndexWriter;
  readonly #ids: DuplicateIds;
  readonly #digest = contentHash();
  readonly #indexed: IndexedFile[] = [];
  /** The places of the repairs that were for a row, by the number of the source. */
  readonly #repairs = new Map<number, Set<number>>();

  constructor(files: ReadFile[], options: Options) {
    this.#files = files;
    this.#options = options;
    this.#path = options.cache.newPath();
    this.#index = new RowIndexWriter(this.#path);
    this.#ids = new DuplicateIds({
      cache: options.cache,
      idsAt: async (places) => (await this.#table().rows(places)).map(({ row_id }) => row_id),
    });
  }

  async run(): Promise<IndexFooter> {
    // The same lines of chats are different rows then.
    if (this.#options.needs === "every_turn") this.#digest.update("every_turn\0");
    let read = 0; // Rows of the current source, which its limit counts.
    for (const [i, file] of this.#files.entries()) {
      const begins = file.number !== this.#files[i - 1]?.number;
      if (begins) read = 0;
      describeFile(this.#digest, file, { begins });
      read += await this.#readFile(file, (file.source.limit ?? Infinity) - read);
    }
    this.#checkRepairs();
    this.#index.flush();
    if (this.#index.size === 0) {
      const file = this.#files.map(({ path }) => path).join(", ");
      throw new DataError("it contains no rows; give a file with at least one", { file });
    }
    const duplicates = await this.#duplicates();
    await this.#checkUnchanged();
    return await this.#finish(duplicates);
  }

  close(): void {
    this.#ids.close();
    this.#index.close();
    removeFile(this.#path);
  }

  /** Returns how many rows were read. */
  async #readFile(file: ReadFile, rows_max: number): Promise<number> {
    const number = this.#indexed.length;
    const shapes: Reading["shapes"] = new Map();
    const reading = { file, number, rows: 0, rows_max, shapes };
    let unpacked: IndexedFile["unpacked"] = null;
    if (rows_max > 0 && isUnpacked(file)) unpacked = await this.#unpack(reading);
    else if (rows_max > 0) await this.#readBlocks(lineBlocks(file.path), reading);
    const { rows } = reading;
    this.#indexed.push({
      rows,
      kept: rows,
      unpacked,
      shapes: [...shapes].map(([name, shape]) => ({ name, ...shape })),
    });
    return rows;
  }

  /** Reads a file while it is unpacked: of one with a limit, the rest is not. */
  async #unpack(reading: Reading): Promise<IndexedFile["unpacked"]> {
    const unpacked = new UnpackedFile(this.#options.cache);
    try {
      const { file } = reading;
      await this.#readBlocks(blocksOf(unpacked.piecesOf(file), file.path), reading);
      return await unpacked.finish();
    } finally {
      unpacked.close();
    }
  }

  async #readBlocks(blocks: AsyncIterable<LineBlock>, reading: Reading): Promise<void> {
    for await (const block of blocks) {
      const bytes = this.#readBlock(block, reading);
      if (reading.file.format.rows === undefined) {
        this.#digest.update(block.bytes.subarray(0, bytes));
      }
      if (reading.rows === reading.rows_max) return;
    }
  }

  /** Returns how many bytes were read. */
  #readBlock(block: LineBlock, reading: Reading): number {
    const { file, number, rows_max } = reading;
    const { source, format: { counts } } = file;
    const { needs } = this.#options;
    const placeOf = (line: number): DataPlace =>
      counts === "line" ? { file: file.path, line } : { file: file.path, row: line };
    for (const { line, start, length, columns, unicode } of rowsIn(block, placeOf)) {
      const found = shapeOf(columns, source.fields);
      const row = readRow(columns, { source, place: placeOf(line), needs, found, unicode });
      if (source.repairs) this.#repaired(file.number, repairFor(columns, source.repairs));
      this.#ids.add(row.row_id, this.#index.size);
      this.#index.add({ file: number, start, length });
      const shape = reading.shapes.get(found.name);
      if (shape) shape.rows++;
      else {
        const fields = shapeFields(columns, { found, fields: source.fields });
        reading.shapes.set(found.name, { rows: 1, fields });
      }
      if (++reading.rows === rows_max) return start - block.start + length + 1;
    }
    return block.bytes.length;
  }

  #repaired(number: number, place: number): void {
    if (place < 0) return;
    this.#repairs.set(number, (this.#repairs.get(number) ?? new Set()).add(place));
  }

  /** The index is kept under the hash of what the files contained before they were read. */
  async #checkUnchanged(): Promise<void> {
    for (const { path, seen } of this.#files) {
      if (!await hasChanged(path, seen)) continue;
      const problem =
        "the file was written while its rows were checked; try again when it is whole";
      throw new DataError(problem, { file: path });
    }
  }

  /** A repair that is for no row was meant for other data. With a limit its row may come later. */
  #checkRepairs(): void {
    for (const [i, { path, number, source: { repairs, limit } }] of this.#files.entries()) {
      if (repairs === undefined || limit !== undefined) continue;
      if (number === this.#files[i + 1]?.number) continue;
      const problem = repairsProblem(repairs, this.#repairs.get(number) ?? new Set());
      if (problem !== null) throw new DataError(problem, { file: path });
    }
  }

  /** What was indexed, readable. */
  #table(): FileTable {
    return new FileTable({
      size: this.#index.size,
      digest: "",
      index: this.#path,
      files: lineFiles(this.#files, this.#indexed, this.#options),
    });
  }

  /** One bit per row: whether it is left out, as an earlier one has its id. Null: none is. */
  async #duplicates(): Promise<Uint8Array | null> {
    let dropped: Uint8Array | null = null;
    let refused: DuplicateId | null = null;
    const table = this.#table();
    for await (const duplicate of this.#ids.found()) {
      const { again } = duplicate;
      const [entry] = await table.entries([again]);
      if (this.#files[entry!.file]!.source.duplicates === "skip") {
        dropped ??= new Uint8Array(Math.ceil(this.#index.size / 8));
        dropped[again >> 3]! |= 1 << (again & 7);
      } else if (refused === null || again < refused.again) refused = duplicate;
    }
    if (refused !== null) throw await this.#duplicate(refused);
    return dropped;
  }

  async #finish(dropped: Uint8Array | null): Promise<IndexFooter> {
    const { cache, key } = this.#options;
    const footer = { key, digest: contentName(this.#digest), files: this.#indexed };
    if (dropped === null) {
      const whole = this.#index.finish(footer);
      Deno.renameSync(this.#path, cache.indexPath(key));
      return whole;
    }
    const path = cache.newPath();
    const index = new RowIndexWriter(path);
    const kept = this.#files.map(() => 0);
    try {
      for (let from = 0; from < this.#index.size; from += COPIED_ROWS) {
        const count = Math.min(COPIED_ROWS, this.#index.size - from);
        const places = Array.from({ length: count }, (_, i) => from + i)
          .filter((place) => (dropped[place >> 3]! & (1 << (place & 7))) === 0);
        for (const entry of await readEntries(this.#path, places)) {
          index.add(entry);
          kept[entry.file]!++;
        }
      }
      const files = this.#indexed.map((file, i) => ({ ...file, kept: kept[i]! }));
      const whole = index.finish({ ...footer, files });
      Deno.renameSync(path, cache.indexPath(key));
      return whole;
    } finally {
      index.close();
      removeFile(path);
    }
  }

  async #duplicate({ id, first, again }: DuplicateId): Promise<DataError> {
    const table = this.#table();
    const [a, b] = [await table.placeOf(first), await table.placeOf(again)];
    const place = a.line === undefined ? `row ${a.row}` : `line ${a.line}`;
    const other = a.line === undefined ? `${a.file} row ${a.row}` : `${a.file}:${a.line}`;
    const together = a.file === b.file;
    const fix = together
      ? "remove one, or set `duplicates: skip`"
      : "give each file a `name`, which is put before its ids (files of one directory or pattern " +
        "share it: list them apart), or set `duplicates: skip`";
    const where = together ? place : other;
    return new DataError(`the row id '${id}' already belongs to ${where}; ${fix}`, b);
  }
}

/**
 * What the digest has of a file: how its source is read, and of other formats than JSON lines, whose
 * lines follow, the hash of its content.
 */
function describeFile(
  digest: Hash,
  { source: { path: _, ...reading }, format, content }: ReadFile,
  { begins }: { begins: boolean },
): void {
  digest.update(begins ? JSON.stringify(reading) : "\0");
  if (format.rows !== undefined) digest.update(JSON.stringify([format.name, content]));
}
