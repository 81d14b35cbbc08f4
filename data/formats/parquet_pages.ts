import type { AsyncBuffer, Compressors, FileMetaData, RowGroup } from "hyparquet";
import { assembleLists, assembleNested } from "hyparquet/src/assemble.js";
import { parquetHeader } from "hyparquet/src/column.js";
import { DEFAULT_PARSERS } from "hyparquet/src/convert.js";
import { parquetSchema } from "hyparquet/src/metadata.js";
import { getMaxRepetitionLevel, getTreePath } from "hyparquet/src/schema.js";
import type { ColumnDecoder, DecodedArray } from "hyparquet/src/types.js";
import { type Dictionary, dictionaryOf, type PageSlice, pageSlices } from "./parquet_page.ts";
import { parseExactly } from "../exact_json.ts";
import { utf8Text } from "../utf8_text.ts";

/** What is read for a page's header at first; most have fewer bytes. */
const HEADER_BYTES = 4096;
const HEADER_BYTES_MAX = 64 * 1024 * 1024;

/** A file that is open. `compressors`: by codec, as hyparquet has them. */
export type ParquetSource = { file: AsyncBuffer; metadata: FileMetaData; compressors: Compressors };

/**
 * The rows of a row group, in short lists that follow each other. One page per column is in memory:
 * the library itself decodes whole row groups, which pyarrow makes of a million rows.
 */
export async function* rowsOfGroup(
  source: ParquetSource,
  group: RowGroup,
): AsyncGenerator<Record<string, unknown>[]> {
  const columns = parquetSchema(source.metadata).children.map((top) => {
    const chunks = group.columns.map(({ meta_data }) => meta_data!)
      .filter(({ path_in_schema: [name] }) => name === top.element.name);
    return { top, leaves: chunks.map((chunk) => new ColumnPages(source, chunk)) };
  });
  const leaves = columns.flatMap((column) => column.leaves);
  const total = Number(group.num_rows);
  for (let read = 0; read < total;) {
    let count = total - read;
    for (const leaf of leaves) count = Math.min(count, await leaf.ready());
    if (count === 0) throw new RangeError(`a column ends at row ${read} of ${total} of its group`);
    const values = columns.map(({ top, leaves }) => {
      if (top.children.length === 0) return leaves[0]!.take(count);
      const parts = new Map(leaves.map((leaf) => [leaf.name, leaf.take(count)]));
      assembleNested(parts, top, PARSERS);
      return parts.get(top.element.name)!;
    });
    yield Array.from(
      { length: count },
      (_, i) => Object.fromEntries(columns.map(({ top }, c) => [top.element.name, values[c]![i]])),
    );
    read += count;
  }
}

/**
 * A text that is not UTF-8 is marked, and long integers of JSON keep their digits; the library would
 * write U+FFFD and round.
 */
const PARSERS = {
  ...DEFAULT_PARSERS,
  stringFromBytes: (bytes: Uint8Array | undefined) => bytes && utf8Text(bytes),
  jsonFromBytes: (bytes: Uint8Array | undefined) => bytes && parseExactly(utf8Text(bytes)),
};

/** The values of one physical column in a row group, slice by slice. */
class ColumnPages {
  readonly name: string;
  readonly #file: AsyncBuffer;
  readonly #decoder: ColumnDecoder;
  /** Whether a row may continue on the next page. */
  readonly #repeated: boolean;
  readonly #end: number;
  #at: number;
  #ended = false;
  #dictionary: Dictionary | null = null;
  #slices: Iterator<PageSlice, undefined> = [].values();
  #values: DecodedArray = [];
  #taken = 0;

  constructor(
    { file, metadata, compressors }: ParquetSource,
    column: NonNullable<RowGroup["columns"][number]["meta_data"]>,
  ) {
    const schemaPath = getTreePath(parquetSchema(metadata), column.path_in_schema);
    this.name = column.path_in_schema.join(".");
    this.#file = file;
    this.#decoder = {
      pathInSchema: column.path_in_schema,
      element: schemaPath.at(-1)!.element,
      schemaPath,
      ...column,
      parsers: PARSERS,
      compressors,
      utf8: false,
    };
    this.#repeated = getMaxRepetitionLevel(schemaPath) > 0;
    this.#at = Number(column.dictionary_page_offset || column.data_page_offset);
    this.#end = this.#at + Number(column.total_compressed_size);
  }

  /** How many whole values are in memory; more are read if there is none. */
  async ready(): Promise<number> {
    while (this.#whole() <= 0 && !this.#ended) await this.#more();
    return this.#whole();
  }

  take(count: number): DecodedArray {
    this.#taken += count;
    return this.#values.slice(this.#taken - count, this.#taken);
  }

  #whole(): number {
    const held = this.#repeated && !this.#ended ? 1 : 0;
    return this.#values.length - this.#taken - held;
  }

  async #more(): Promise<void> {
    const { value: slice } = this.#slices.next();
    if (slice === undefined) return await this.#readPage();
    const begun = this.#repeated ? Array.from(this.#values.slice(this.#taken)) : [];
    const { definition, repetition, values } = slice;
    const { schemaPath } = this.#decoder;
    this.#values = assembleLists(begun, definition, repetition, values, schemaPath);
    this.#taken = 0;
  }

  async #readPage(): Promise<void> {
    if (this.#at >= this.#end) {
      this.#ended = true;
      return;
    }
    const { header, length } = await this.#header();
    const from = this.#at + length;
    this.#at = from + header.compressed_page_size;
    const bytes = new Uint8Array(await this.#file.slice(from, this.#at));
    const page = { header, bytes, decoder: this.#decoder };
    if (header.type === "DICTIONARY_PAGE") this.#dictionary = dictionaryOf(page);
    else this.#slices = pageSlices({ ...page, dictionary: this.#dictionary });
  }

  async #header() {
    for (let bytes = HEADER_BYTES;; bytes *= 4) {
      const end = Math.min(this.#at + bytes, this.#file.byteLength);
      const reader = { view: new DataView(await this.#file.slice(this.#at, end)), offset: 0 };
      try {
        return { header: parquetHeader(reader), length: reader.offset };
      } catch (error) {
        // Statistics may be long. A header that is cut off cannot be parsed.
        if (end === this.#file.byteLength || bytes >= HEADER_BYTES_MAX) throw error;
      }
    }
  }
}
