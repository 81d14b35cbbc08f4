import { convert as converted } from "hyparquet/src/convert.js";
import { decompressPage, readDataPage, readDataPageV2 } from "hyparquet/src/datapage.js";
import { readRleBitPackedHybrid } from "hyparquet/src/encoding.js";
import { readPlain } from "hyparquet/src/plain.js";
import { getMaxDefinitionLevel, getMaxRepetitionLevel } from "hyparquet/src/schema.js";
import type { ColumnDecoder, DataReader, DecodedArray, PageHeader } from "hyparquet/src/types.js";
import { decimalOf } from "./decimal.ts";

/** Values that are decoded together: those of a whole page would pile up as garbage. */
const SLICE_VALUES = 256;
/** Before each of the byte strings that lie next to each other. */
const LENGTH_BYTES = 4;

/** Consecutive values of a page and their levels, as Dremel has them; without levels: empty. */
export type PageSlice = { definition: number[]; repetition: number[]; values: DecodedArray };

type Page = {
  header: PageHeader;
  bytes: Uint8Array;
  decoder: ColumnDecoder;
  dictionary: Dictionary | null;
};

/** The values at these places of a column's dictionary. */
export type Dictionary = (places: number[]) => DecodedArray;

/** One byte per value, not numbers on the heap: pages outlive its youth, and it would grow. */
type Levels = { definition: Uint8Array; repetition: Uint8Array };
type OpenPage = { levels: Levels; values: DataReader };

/** The values of a page of data, slice by slice; those before must have been used by then. */
export function* pageSlices(page: Page): Generator<PageSlice> {
  const { header, decoder: { type, element, schemaPath } } = page;
  const data = header.data_page_header ?? header.data_page_header_v2;
  if (data === undefined) throw new TypeError(`a page of type ${header.type} is unknown`);
  const { levels, values } = opened(page);
  const defined = getMaxDefinitionLevel(schemaPath);
  const missing = (from: number, to: number) =>
    levels.definition.subarray(from, to).reduce((sum, one) => one === defined ? sum : sum + 1, 0);
  const count = data.num_values;
  const next = valuesOf(page, { values, count: count - missing(0, count) });
  if (values.view.buffer !== page.bytes.buffer) free(page.bytes);
  for (let from = 0; from < count; from += SLICE_VALUES) {
    const to = Math.min(from + SLICE_VALUES, count);
    yield {
      definition: Array.from(levels.definition.subarray(from, to)),
      repetition: Array.from(levels.repetition.subarray(from, to)),
      values: next(to - from - missing(from, to)),
    };
  }
  // Values that are bytes refer to the page, texts and numbers do not.
  const bytes = type === "BYTE_ARRAY" || type === "FIXED_LEN_BYTE_ARRAY";
  const text = element.converted_type === "UTF8" || element.logical_type?.type === "STRING";
  if (!bytes || text) free(values.view);
}

/** As the library, except for decimals, which it rounds silently. */
function convert(values: DecodedArray, decoder: ColumnDecoder): DecodedArray {
  const { converted_type, scale = 0 } = decoder.element;
  if (converted_type !== "DECIMAL") return converted(values, decoder);
  return Array.from(values as Iterable<unknown>, (value) => decimalOf(value, scale));
}

/** Returns memory at once: a buffer that outlived a page waits for a collection of everything. */
function free({ buffer, byteLength }: ArrayBufferView): void {
  const whole = buffer.byteLength === byteLength; // Else it belongs to a decompressor.
  if (whole && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

/** Decodes the next `count` values of a page at each call. */
function valuesOf(
  page: Page,
  { values, count }: { values: DataReader; count: number },
): (count: number) => DecodedArray {
  const { header, bytes, decoder, dictionary } = page;
  const { encoding } = (header.data_page_header ?? header.data_page_header_v2)!;
  const { type, element } = decoder;
  if (encoding === "PLAIN" && type !== "BOOLEAN") {
    return (some) => convert(readPlain(values, type, some, element.type_length), decoder);
  }
  let taken = 0;
  if (encoding === "PLAIN_DICTIONARY" || encoding === "RLE_DICTIONARY") {
    if (dictionary === null) throw new TypeError("a page's dictionary is missing");
    const places = new Uint32Array(count);
    const width = count === 0 ? 0 : values.view.getUint8(values.offset++);
    const length = values.view.byteLength - values.offset;
    if (width > 0) readRleBitPackedHybrid(values, width, places, length);
    return (some) => dictionary(Array.from(places.subarray(taken, taken += some)));
  }
  const { dataPage } = header.data_page_header
    ? readDataPage(decompressed(page, bytes), header.data_page_header, decoder)
    : readDataPageV2(bytes, header, decoder);
  return (some) => convert(dataPage.slice(taken, taken += some), decoder);
}

/**
 * The dictionary of a column. Texts become objects only when they are asked for: a megabyte of them
 * would let the heap grow.
 */
export function dictionaryOf({ header, bytes, decoder }: Omit<Page, "dictionary">): Dictionary {
  const { type, element } = decoder;
  const { num_values: count } = header.dictionary_page_header!;
  const size = header.uncompressed_page_size;
  const reader = readerOf(decompressPage(bytes, size, decoder.codec, decoder.compressors));
  if (type !== "BYTE_ARRAY") {
    const values = convert(readPlain(reader, type, count, element.type_length), decoder);
    return (places) => places.map((place) => values[place]);
  }
  const starts = new Uint32Array(count);
  for (let i = 0; i < count; i++) {
    starts[i] = reader.offset;
    reader.offset += LENGTH_BYTES + reader.view.getUint32(reader.offset, true);
  }
  return (places) =>
    convert(
      places.map((place) =>
        readPlain({ view: reader.view, offset: starts[place]! }, type, 1, undefined)[0]
      ),
      decoder,
    );
}

/**
 * Of a first version's page, all is compressed, and levels say their length. Of a second version's,
 * only the values are compressed.
 */
function opened(page: Page): OpenPage {
  const { header, bytes, decoder: { schemaPath } } = page;
  const repeated = getMaxRepetitionLevel(schemaPath);
  const defined = getMaxDefinitionLevel(schemaPath);
  if (header.data_page_header) {
    const count = header.data_page_header.num_values;
    const values = readerOf(decompressed(page, bytes));
    const repetition = levelsOf(values, { max: repeated, count });
    return {
      levels: { repetition, definition: levelsOf(values, { max: defined, count }) },
      values,
    };
  }
  const { num_values: count, ...second } = header.data_page_header_v2!;
  const begin = second.repetition_levels_byte_length;
  const end = begin + second.definition_levels_byte_length;
  const of = (from: number, to: number, max: number) =>
    levelsOf(readerOf(bytes.subarray(from, to)), { max, count, bytes: to - from });
  const levels = { repetition: of(0, begin, repeated), definition: of(begin, end, defined) };
  const packed = bytes.subarray(end);
  const values = readerOf(second.is_compressed === false ? packed : decompressed(page, packed));
  return { levels, values };
}

function decompressed({ header, bytes, decoder }: Page, part: Uint8Array): Uint8Array {
  const size = header.uncompressed_page_size - (bytes.length - part.length);
  return decompressPage(part, size, decoder.codec, decoder.compressors);
}

function readerOf(bytes: Uint8Array): DataReader {
  return { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: 0 };
}

/** `bytes`: how long they are; absent: they say it themselves. */
function levelsOf(
  reader: DataReader,
  { max, count, bytes }: { max: number; count: number; bytes?: number },
): Uint8Array {
  const levels = new Uint8Array(max === 0 ? 0 : count);
  if (max > 0) readRleBitPackedHybrid(reader, 32 - Math.clz32(max), levels, bytes);
  return levels;
}
