import { createHash } from "node:crypto";
import type { SchemaElement } from "hyparquet";
import { ByteWriter, ParquetWriter } from "hyparquet-writer";
import type { ColumnType } from "./column_type.ts";
import type { Columns } from "../rows/row_fields.ts";
import { writeAll } from "../rows/write_all.ts";

/** Rows and text of a row group: what is in memory at once. */
const GROUP_ROWS_MAX = 10_000;
const GROUP_CHARACTERS_MAX = 16 * 1024 * 1024;

/** A column of a file. */
export type NamedColumn = { name: string; type: ColumnType };

/**
 * Writes rows as Parquet, one row group in memory at a time. Equal rows give equal bytes: where a
 * row group ends depends on the rows alone.
 */
export class ParquetRows {
  readonly #file: Deno.FsFile;
  readonly #columns: readonly NamedColumn[];
  readonly #bytes = new ByteWriter();
  readonly #writer: ParquetWriter;
  readonly #hash = createHash("sha256");
  #held: Columns[] = [];
  #characters = 0;
  #rows = 0;

  /** In a file that is open for writing and empty; the caller closes it. */
  constructor(file: Deno.FsFile, columns: readonly NamedColumn[]) {
    this.#file = file;
    this.#columns = columns;
    this.#writer = new ParquetWriter({
      writer: this.#bytes,
      schema: [
        { name: "schema", num_children: columns.length },
        ...columns.flatMap(({ name, type }) => elementsOf(name, type)),
      ],
      createdBy: "holdfast",
    });
  }

  /** `characters`: the row's length as JSON. */
  async add(row: Columns, characters: number): Promise<void> {
    this.#held.push(row);
    this.#characters += characters;
    if (this.#held.length < GROUP_ROWS_MAX && this.#characters < GROUP_CHARACTERS_MAX) return;
    await this.#writeGroup();
  }

  /** Ends the file. Its content is durable then. */
  async finish(): Promise<{ rows: number; bytes: number; sha256: string }> {
    await this.#writeGroup();
    await this.#writer.finish();
    await this.#flush();
    await this.#file.sync();
    const { offset: bytes } = this.#bytes;
    return { rows: this.#rows, bytes, sha256: this.#hash.digest("hex") };
  }

  async #writeGroup(): Promise<void> {
    const held = this.#held;
    if (held.length === 0) return;
    const columnData = this.#columns.map(({ name, type }) => ({
      name,
      data: held.map((row) => valueOf(row[name], type)),
    }));
    await this.#writer.write({ columnData, rowGroupSize: held.length });
    this.#rows += held.length;
    this.#held = [];
    this.#characters = 0;
    await this.#flush();
  }

  async #flush(): Promise<void> {
    const bytes = this.#bytes.getBytes();
    this.#hash.update(bytes);
    await writeAll(this.#file, bytes);
    this.#bytes.index = 0; // Its offset in the file stays.
  }
}

const PRIMITIVES = {
  null: { type: "BYTE_ARRAY", converted_type: "UTF8" },
  boolean: { type: "BOOLEAN" },
  integer: { type: "INT64" },
  number: { type: "DOUBLE" },
  text: { type: "BYTE_ARRAY", converted_type: "UTF8" },
  bytes: { type: "BYTE_ARRAY" },
} as const;

/** A column as Parquet declares it: lists in three levels, as all readers know them. */
function elementsOf(name: string, type: ColumnType): SchemaElement[] {
  const optional = { name, repetition_type: "OPTIONAL" as const };
  switch (type.is) {
    case "list":
      return [
        { ...optional, num_children: 1, converted_type: "LIST" },
        { name: "list", repetition_type: "REPEATED", num_children: 1 },
        ...elementsOf("element", type.item),
      ];
    case "struct": {
      const fields = sortedFields(type);
      return [
        { ...optional, num_children: fields.length },
        ...fields.flatMap(([field, one]) => elementsOf(field, one)),
      ];
    }
    default:
      return [{ ...optional, ...PRIMITIVES[type.is] }];
  }
}

/** By code units: the same order however the type was recorded. */
function sortedFields({ fields }: Extract<ColumnType, { is: "struct" }>): [string, ColumnType][] {
  return Object.entries(fields).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** A value as the writer takes it. */
function valueOf(value: unknown, type: ColumnType): unknown {
  if (value === undefined || value === null || type.is === "null") return null;
  switch (type.is) {
    case "integer":
      return BigInt(value as number);
    case "bytes":
      return Uint8Array.fromBase64((value as { base64: string }).base64);
    case "list":
      return (value as unknown[]).map((one) => valueOf(one, type.item));
    case "struct":
      return Object.fromEntries(
        sortedFields(type).map(([name, one]) => [name, valueOf((value as Columns)[name], one)]),
      );
    default:
      return value;
  }
}
