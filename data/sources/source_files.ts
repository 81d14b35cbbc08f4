import { glob } from "node:fs/promises";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { Decompress } from "fzstd";
import { DataError } from "../errors.ts";
import { arrow } from "../formats/arrow.ts";
import type { DataFormat } from "../formats/format.ts";
import { jsonLines } from "../formats/json_lines.ts";
import { type Compression, formatOf, FORMATS, knownEndings } from "../formats/table.ts";
import type { SourceConfig } from "../source_config.ts";
import { hubHint, isHubDataset } from "../hub_dataset.ts";
import { hubFiles } from "./hub_files.ts";
import { savedFiles } from "./saved_dataset.ts";

/** One file of a source, and how it is read. */
export type SourceFile = {
  path: string;
  format: DataFormat;
  compression: Compression | null;
};

const SNIFFED_BYTES = 4096;
const { NotFound, NotADirectory } = Deno.errors;

/**
 * The files that a source names, in the order of their names: the file at `path`; the data files
 * directly in the directory there; or all files that the pattern matches. Names are compared by
 * code units, so the order is the same on every machine. A directory of `datasets.save_to_disk`
 * says its files and their order itself, and so does a data set of the hub, which is in its cache.
 * @throws {DataError} If there is none, or one is of no known format.
 */
export async function sourceFiles(
  { path, format }: Pick<SourceConfig, "path" | "format">,
): Promise<SourceFile[]> {
  if (isHubDataset(path)) {
    return await Promise.all((await hubFiles(path)).map((one) => sourceFile(one, format)));
  }
  const kind = await kindOf(path);
  if (kind === "file") return [await sourceFile(path, format)];
  if (kind === "directory") return await filesIn(path, format);
  if (!isPattern(path)) {
    const hint = hubHint(path);
    throw new DataError(`Cannot read it: there is no such file${hint}`, { file: path });
  }
  const found: string[] = [];
  for await (const match of glob(path)) if (await kindOf(match) === "file") found.push(match);
  if (found.length === 0) {
    throw new DataError("the pattern matches no file; correct it, or name a file or a directory", {
      file: path,
    });
  }
  return await Promise.all(found.sort(byCodeUnits).map((one) => sourceFile(one, format)));
}

/** Whether a path that does not exist can be a pattern. */
export function isPattern(path: string): boolean {
  return /[*?[\]{}]/.test(path);
}

async function kindOf(path: string): Promise<"file" | "directory" | null> {
  try {
    return (await Deno.stat(path)).isDirectory ? "directory" : "file";
  } catch (error) {
    if (error instanceof NotFound || error instanceof NotADirectory) return null;
    throw new DataError(`Cannot read it: ${error}`, { file: path });
  }
}

async function filesIn(directory: string, wanted: SourceConfig["format"]): Promise<SourceFile[]> {
  const names = (await Array.fromAsync(Deno.readDir(directory)))
    .filter(({ name, isDirectory }) => !isDirectory && !name.startsWith("."))
    .map(({ name }) => name);
  const saved = (wanted ?? arrow.name) === arrow.name
    ? await savedFiles(directory.replace(/\/+$/, ""), names)
    : null;
  if (saved !== null) return saved.map((path) => ({ path, format: arrow, compression: null }));
  if (names.includes("config.json") && names.some((name) => /\.(safetensors|bin)$/.test(name))) {
    throw new DataError("it is a model's directory; name a file or a directory of rows", {
      file: directory,
    });
  }
  const files = names.sort(byCodeUnits).flatMap((name): SourceFile[] => {
    const { format, compression } = formatOf(name);
    if (format === null || (wanted ?? format.name) !== format.name) return [];
    return [{ path: `${directory.replace(/\/+$/, "")}/${name}`, format, compression }];
  });
  // Beside data files, a .json file describes them: dataset_info.json.
  const rows = files.filter(({ path }) => !path.endsWith(".json"));
  if (files.length > 0) return rows.length > 0 ? rows : files;
  throw new DataError(
    `the directory has no data file (${names.length} files); names of data files end in ` +
      knownEndings(),
    { file: directory },
  );
}

async function sourceFile(path: string, wanted: SourceConfig["format"]): Promise<SourceFile> {
  const known = formatOf(path);
  const format = wanted === undefined
    ? known.format
    : FORMATS.find(({ name }) => name === wanted) ?? null;
  if (format !== null) return { path, format, compression: known.compression };
  // A file of any other name is JSON lines if it begins like them.
  using file = await Deno.open(path);
  const bytes = new Uint8Array(SNIFFED_BYTES);
  const read = await file.read(bytes) ?? 0;
  const begins = new TextDecoder().decode(bytes.subarray(0, read));
  if (known.compression === null && /^\s*(?:\{|$)/.test(begins)) {
    return { path, format: jsonLines, compression: null };
  }
  throw new DataError(
    `its name says no known format; rename it (names end in ${knownEndings()}), or say its ` +
      `\`format\`: ${FORMATS.map(({ name }) => name).join(", ")}`,
    { file: path },
  );
}

/**
 * A file's bytes in order, decompressed.
 * @throws {DataError} If the file is not compressed as its name says, or is cut off.
 */
export async function* bytesOf({ path, compression }: SourceFile): AsyncGenerator<Uint8Array> {
  const packed = createReadStream(path);
  if (compression === null) return yield* packed as AsyncIterable<Uint8Array>;
  try {
    // Iterating throws a pipeline's error; the callback only keeps it from being thrown twice.
    yield* compression === "gzip"
      ? pipeline(packed, createGunzip(), () => {}) as AsyncIterable<Uint8Array>
      : unzstded(packed);
  } catch (error) {
    throw new DataError(
      `the file cannot be decompressed as ${compression} (${(error as Error).message}); it is ` +
        "damaged or cut off, or its name has the wrong ending",
      { file: path },
    );
  } finally {
    packed.destroy();
  }
}

/**
 * Not by `node:zlib`: in Deno 2.9 its zstd ends without an error after the first of several frames,
 * and at the end of a torn file.
 */
async function* unzstded(packed: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const ready: Uint8Array[] = [];
  const unpacker = new Decompress((bytes) => ready.push(bytes.slice()));
  for await (const bytes of packed) {
    unpacker.push(bytes);
    yield* ready.splice(0);
  }
  unpacker.push(new Uint8Array(), true);
  yield* ready;
}

function byCodeUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
