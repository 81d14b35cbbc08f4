import { deepStrictEqual, throws } from "node:assert/strict";
import type { ColumnDecoder, PageHeader } from "hyparquet/src/types.js";
import { dictionaryOf, pageSlices } from "../../../data/formats/parquet_page.ts";

const element = (name: string, repetition_type: "REQUIRED" | "OPTIONAL") => ({
  children: [],
  path: [name],
  count: 1,
  element: { name, repetition_type, type: "BYTE_ARRAY", converted_type: "UTF8" },
});
const decoder = {
  type: "BYTE_ARRAY",
  codec: "UNCOMPRESSED",
  element: element("a", "OPTIONAL").element,
  schemaPath: [element("root", "REQUIRED"), element("a", "OPTIONAL")],
  parsers: { stringFromBytes: (bytes: Uint8Array) => new TextDecoder().decode(bytes) },
} as unknown as ColumnDecoder;

const texts = (...all: string[]) =>
  all.flatMap((text) => [text.length, 0, 0, 0, ...new TextEncoder().encode(text)]);

function page(encoding: string, body: number[], num_values: number) {
  const bytes = new Uint8Array(body);
  const data_page_header = { num_values, encoding };
  const header = { type: "DATA_PAGE", uncompressed_page_size: body.length, data_page_header };
  return { header: header as unknown as PageHeader, bytes, decoder };
}

/** Two values, one that is missing, one value: runs of levels behind their length. */
const LEVELS = [6, 0, 0, 0, 4, 1, 2, 0, 2, 1];

Deno.test("pageSlices() gives levels and texts of a plain page", () => {
  const plain = page("PLAIN", [...LEVELS, ...texts("x", "", "yz")], 4);
  deepStrictEqual([...pageSlices({ ...plain, dictionary: null })], [
    { definition: [1, 1, 0, 1], repetition: [], values: ["x", "", "yz"] },
  ]);
});

Deno.test("pageSlices() looks texts up in the column's dictionary", () => {
  const bytes = new Uint8Array(texts("zero", "one"));
  const header = {
    type: "DICTIONARY_PAGE",
    uncompressed_page_size: bytes.length,
    dictionary_page_header: { num_values: 2 },
  } as unknown as PageHeader;
  const dictionary = dictionaryOf({ header, bytes, decoder });
  deepStrictEqual(dictionary([1, 0, 1]), ["one", "zero", "one"]);
  // Places of one bit: 1, 0, 1.
  const coded = page("RLE_DICTIONARY", [...LEVELS, 1, 3, 0b101], 4);
  deepStrictEqual([...pageSlices({ ...coded, dictionary })][0]!.values, ["one", "zero", "one"]);
  throws(
    () => [...pageSlices({ ...page("RLE_DICTIONARY", [...LEVELS, 1, 3, 5], 4), dictionary: null })],
    {
      message: "a page's dictionary is missing",
    },
  );
});

Deno.test("pageSlices() refuses a page of an unknown type", () => {
  const { header, ...rest } = page("PLAIN", [], 0);
  const unknown = { ...header, type: "INDEX_PAGE", data_page_header: undefined } as PageHeader;
  throws(() => [...pageSlices({ ...rest, header: unknown, dictionary: null })], /INDEX_PAGE/);
});
