import type { Columns } from "../rows/row_fields.ts";

/**
 * A format of files that hold rows. JSON lines are read where they are; a file of any other format
 * is unpacked once, to JSON lines in the home's cache, because the rows of a run are drawn in
 * random order and only lines can be reached alone.
 */
export type DataFormat = {
  /** What the `format` of a source calls it. */
  readonly name: "json_lines" | "csv" | "parquet" | "arrow";
  /** How names of such files end, in lower case. */
  readonly endings: readonly string[];
  /** Whether `.gz` and `.zst` may follow the ending. */
  readonly compressible: boolean;
  /** What an error counts: lines of a text, or rows. */
  readonly counts: "line" | "row";
  /**
   * Streams the rows of a file in short lists, as a row alone is too little work for a promise;
   * absent: its lines are rows already.
   * @throws {DataError} If the file is not of this format.
   */
  readonly rows?: (file: PackedFile) => AsyncGenerator<Columns[]>;
};

/** A file on disk, and what errors call it. */
export type PackedFile = {
  readonly path: string;
  readonly named: string;
  /** Its bytes in order, decompressed. */
  bytes(): AsyncIterable<Uint8Array>;
};
