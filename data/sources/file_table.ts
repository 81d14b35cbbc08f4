import { open } from "node:fs/promises";
import { DataError, type DataPlace } from "../errors.ts";
import { lineBlocks, linesIn, parseLine } from "./json_lines.ts";
import type { Row } from "../prompt.ts";
import { readEntries, type RowEntry } from "../rows/row_index.ts";
import { checkPlaces, type RowTable } from "../rows/row_table.ts";
import { utf8Text } from "../utf8_text.ts";

/** A file with one row per line, and how its rows are read. */
export type LineFile = {
  /** What errors call it: the file that the configuration names. */
  named: string;
  /** The file with its lines: the same, or what it was unpacked to. */
  path: string;
  /** What errors count in it. */
  counts: "line" | "row";
  /** How the file looked when it was opened; null: its name says what it contains. */
  seen: FileState | null;
  read(columns: Record<string, unknown>): Row;
};

/** What changes if a file is written. */
export type FileState = { size: number; mtime_ms: number; inode: number | null };

const READ_BYTES = 1024 * 1024;
/** Bytes between two rows that are read and thrown away, rather than with another call. */
const GAP_BYTES = 4096;

/** How a file looks now. */
export async function stateOf(path: string): Promise<FileState> {
  const { size, mtime, ino } = await Deno.stat(path);
  return { size, mtime_ms: mtime?.getTime() ?? 0, inode: ino };
}

/** Whether a file does not look as it did, or is gone. */
export async function hasChanged(path: string, seen: FileState): Promise<boolean> {
  const now = await stateIfThere(path);
  return JSON.stringify(now) !== JSON.stringify(seen);
}

async function stateIfThere(path: string): Promise<FileState | null> {
  return await stateOf(path).catch((error) => {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  });
}

/** Rows of files, reached by the places that an index holds. */
export class FileTable implements RowTable {
  readonly size: number;
  readonly digest: string;
  readonly #index: string;
  readonly #files: readonly LineFile[];

  constructor(
    options: { size: number; digest: string; index: string; files: readonly LineFile[] },
  ) {
    this.size = options.size;
    this.digest = options.digest;
    this.#index = options.index;
    this.#files = options.files;
  }

  async rows(places: readonly number[]): Promise<Row[]> {
    checkPlaces(places, this.size);
    const entries = await this.entries(places);
    const rows = new Array<Row>(places.length);
    const wanted = entries.map((entry, i) => ({ entry, i }));
    for (const [number, some] of Map.groupBy(wanted, ({ entry }) => entry.file)) {
      const file = this.#files[number]!;
      const bytes = await readLines(file, some.map(({ entry }) => entry));
      for (const [at, { i }] of some.entries()) {
        rows[i] = file.read(parseLine(utf8Text(bytes[at]!), { file: file.named })!);
      }
    }
    return rows;
  }

  async placeOf(place: number): Promise<DataPlace> {
    const [entry] = await this.entries([place]);
    const { path, named, counts } = this.#files[entry!.file]!;
    let number = 1;
    for await (const block of lineBlocks(path)) {
      if (block.start > entry!.start) break;
      for (const { line, start } of linesIn(block)) if (start <= entry!.start) number = line;
    }
    return { file: named, [counts]: number };
  }

  /** Where rows are. */
  async entries(places: readonly number[]): Promise<RowEntry[]> {
    try {
      return await readEntries(this.#index, places);
    } catch (error) {
      throw new DataError(
        `Cannot read the index of rows: ${(error as Error).message}; it is made again when the ` +
          "run resumes",
        { file: this.#index },
      );
    }
  }
}

type Span = { start: number; end: number; members: { entry: RowEntry; i: number }[] };

/** The lines of entries of one file, in their order. */
async function readLines(file: LineFile, entries: readonly RowEntry[]): Promise<Uint8Array[]> {
  await checkUnchanged(file);
  const lines = new Array<Uint8Array>(entries.length);
  const handle = await open(file.path);
  try {
    for (const { start, end, members } of spansOf(entries)) {
      const bytes = new Uint8Array(end - start);
      const { bytesRead } = await handle.read(bytes, 0, bytes.length, start);
      if (bytesRead < bytes.length) throw changed(file);
      for (const { entry, i } of members) {
        lines[i] = bytes.subarray(entry.start - start, entry.start - start + entry.length);
      }
    }
  } finally {
    await handle.close();
  }
  return lines;
}

/** What is read with one call: rows next to each other. */
function spansOf(entries: readonly RowEntry[]): Span[] {
  const sorted = entries.map((entry, i) => ({ entry, i }))
    .sort((a, b) => a.entry.start - b.entry.start);
  const spans: Span[] = [];
  for (const member of sorted) {
    const { start, length } = member.entry;
    const last = spans.at(-1);
    const end = start + length;
    if (last && start - last.end <= GAP_BYTES && end - last.start <= READ_BYTES) {
      last.end = Math.max(last.end, end);
      last.members.push(member);
    } else spans.push({ start, end, members: [member] });
  }
  return spans;
}

async function checkUnchanged(file: LineFile): Promise<void> {
  if (file.seen !== null) {
    if (await hasChanged(file.path, file.seen)) throw changed(file);
  } else if (await stateIfThere(file.path) === null) {
    throw new DataError(
      "its unpacked rows are gone from the home's cache; they are made again when the run resumes",
      { file: file.named },
    );
  }
}

function changed({ named }: LineFile): DataError {
  return new DataError(
    "the file has changed since it was opened; restore it, then resume: data files stay as they " +
      "are while a run reads them",
    { file: named },
  );
}
