import { type FileHandle, open } from "node:fs/promises";
import type { Field, RecordBatch } from "apache-arrow";
import { Message } from "apache-arrow/ipc/metadata/message";
import { RecordBatchReader } from "apache-arrow/ipc/reader";
import { DataError } from "../errors.ts";
import type { Columns } from "../rows/row_fields.ts";
import { unreadableField, valuesOf } from "./arrow_values.ts";
import { bytesAt } from "./bytes_at.ts";
import type { PackedFile } from "./format.ts";
import { jsonValue } from "./json_value.ts";

/** Before each message: four bytes of ones, and the length of its metadata; 0 ends the stream. */
const PREFIX_BYTES = 8;
const CONTINUES = -1;
const FILE_MAGIC = "ARROW1";
/** Rows that are handed out together: a batch may have any number. */
const LIST_ROWS = 256;

/** The rows of a stream of record batches: one is read, the next one already waits. */
export async function* arrowRows({ path, named }: PackedFile): AsyncGenerator<Columns[]> {
  const handle = await open(path);
  let read: number | null = null; // Null: not even the columns are known.
  try {
    const reader = await RecordBatchReader.from(messagesOf(handle, named));
    await reader.open();
    if (reader.schema === undefined) throw new RangeError("it has no columns");
    checkTypes(reader.schema.fields, named);
    read = 0;
    for await (const batch of reader) {
      const row = rowsOf(batch);
      for (let from = 0; from < batch.numRows; from += LIST_ROWS) {
        const rows: Columns[] = [];
        const to = Math.min(from + LIST_ROWS, batch.numRows);
        for (let i = from; i < to; i++, read++) rows.push(row(i));
        yield rows;
      }
    }
  } catch (error) {
    throw error instanceof DataError ? error : damaged(error as Error, { read, named });
  } finally {
    await handle.close();
  }
}

function rowsOf({ schema: { fields }, data, numRows }: RecordBatch): (place: number) => Columns {
  const columns = fields.map((field, i) => {
    const column = data.children[i]!;
    if (column.length !== numRows) {
      throw new RangeError(`column '${field.name}' has ${column.length} of ${numRows} values`);
    }
    return { name: field.name, value: valuesOf(field, column) };
  });
  return (place) =>
    jsonValue(
      Object.fromEntries(columns.map(({ name, value }) => [name, value(place)])),
    ) as Columns;
}

/**
 * The messages of a stream, each whole: the library takes a stream that is cut off between two of
 * them for a shorter one.
 */
async function* messagesOf(handle: FileHandle, named: string): AsyncGenerator<Uint8Array> {
  const { size } = await handle.stat();
  for (let at = 0, end = 0;; at = end) {
    const prefix = await bytesAt(handle, at, at + PREFIX_BYTES);
    if (at === 0) checkMagic(prefix, named);
    const view = new DataView(prefix.buffer);
    const length = view.getInt32(4, true);
    if (view.getInt32(0, true) !== CONTINUES || length < 0) {
      throw new RangeError(`no message begins at byte ${at}`);
    }
    const body = at + PREFIX_BYTES + length;
    if (length === 0) {
      if (body === size) return;
      throw new RangeError(`its rows end at byte ${body} of ${size}`);
    }
    if (body > size) throw new RangeError(`the file ends at byte ${size}`);
    const message = Message.decode(await bytesAt(handle, at + PREFIX_BYTES, body));
    checkCompression(message, named);
    end = body + message.bodyLength;
    if (!(end >= body && end <= size)) throw new RangeError(`the file ends at byte ${size}`);
    yield await bytesAt(handle, at, end);
  }
}

function checkMagic(prefix: Uint8Array, named: string): void {
  if (!new TextDecoder("latin1").decode(prefix).startsWith(FILE_MAGIC)) return;
  throw new DataError(
    "it is a file of Arrow (Feather), and only streams can be read, as `datasets` writes them; " +
      "write it as Parquet",
    { file: named },
  );
}

function checkCompression(message: Message, named: string): void {
  const batch = message.isRecordBatch()
    ? message.header()
    : message.isDictionaryBatch()
    ? message.header().data
    : null;
  if (batch === null || batch.compression === null) return;
  throw new DataError(
    "its batches are compressed, which cannot be read; write it without compression, as " +
      "`datasets.save_to_disk` does, or as Parquet",
    { file: named },
  );
}

function checkTypes(fields: Field[], named: string): void {
  const field = unreadableField(fields);
  if (field === null) return;
  throw new DataError(
    `values of the type ${field.type} cannot be read; cast the column to a different type, or ` +
      "remove it",
    { file: named, field: field.path },
  );
}

function damaged(
  { message }: Error,
  { read, named }: { read: number | null; named: string },
): DataError {
  return read === null
    ? new DataError(
      `the file is no Arrow stream, or it is cut off (${message}); write or download it again, or ` +
        "name its `format`",
      { file: named },
    )
    : new DataError(
      `the rows from this one on cannot be decoded (${message}); the file is cut off or damaged: ` +
        "write or download it again",
      { file: named, row: read + 1 },
    );
}
