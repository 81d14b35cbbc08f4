import { createHash, type Hash } from "node:crypto";
import { contentHash, contentName } from "./content_hash.ts";
import { DataError, type DataPlace } from "../errors.ts";
import { isAtRisk, parseExactly } from "../exact_json.ts";
import { strictText, utf8Text } from "../utf8_text.ts";

const LINE_BYTES_MAX = 64 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
/** Of a text that is parsed at once: with larger ones, memory grows with the rows. */
const PIECE_BYTES = 16 * 1024;
const NEWLINE = 10;

/**
 * Whole lines of a file that follow each other, each with its newline: the number of the first one
 * from 1, its first byte in the file, the bytes, which are valid until the next block is read, and
 * where among them the newlines are.
 */
export type LineBlock = { line: number; start: number; bytes: Uint8Array; ends: number[] };
/** A line without its newline: its number from 1, its first byte in the file, its length in bytes. */
type TextLine = { line: number; start: number; length: number; text: string };
/** A line with an object: see {@linkcode TextLine}. `unicode`: it is known that all its texts are. */
type RowLine = {
  line: number;
  start: number;
  length: number;
  columns: Columns;
  unicode: boolean;
};
type Line = { line: number; value: Columns };
type Columns = Record<string, unknown>;

/**
 * Reads a JSONL file line by line: memory is one line, not the file.
 * @throws {DataError} With file and line, if a line is not JSON or not an object.
 */
export async function* readJsonLines(file: string): AsyncGenerator<Line> {
  for await (const block of lineBlocks(file)) {
    for (const { line, columns: value } of rowsIn(block, (line) => ({ file, line }))) {
      yield { line, value };
    }
  }
}

/**
 * Name of a file's content: sha256 and length of its bytes, so that a resumed run notices a changed
 * file.
 */
export async function digestFile(file: string): Promise<{ sha256: string; bytes: number }> {
  const hash = createHash("sha256");
  const bytes = await hashFile(file, hash);
  return { sha256: hash.digest("hex"), bytes };
}

/** The same for the home's cache: {@linkcode contentHash}. */
export async function nameContent(file: string): Promise<{ content: string; bytes: number }> {
  const hash = contentHash();
  const bytes = await hashFile(file, hash);
  return { content: contentName(hash), bytes };
}

/** Returns how many bytes there are. */
async function hashFile(file: string, hash: Hash): Promise<number> {
  await readable(file);
  let bytes = 0;
  for await (const chunk of chunksOf(file)) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return bytes;
}

/**
 * The bytes of a file, all through two buffers: a chunk is gone when the next is read, which is read
 * ahead. A stream's buffers are garbage that piles up faster than it is collected.
 */
async function* chunksOf(file: string): AsyncGenerator<Uint8Array> {
  using open = await Deno.open(file);
  let [buffer, next] = [new Uint8Array(CHUNK_BYTES), new Uint8Array(CHUNK_BYTES)];
  let reading = open.read(buffer);
  try {
    for (let read = await reading; read !== null; read = await reading) {
      reading = open.read(next);
      reading.catch(() => {}); // Thrown when it is awaited, which may be much later.
      yield buffer.subarray(0, read);
      [buffer, next] = [next, buffer];
    }
  } finally {
    await reading.catch(() => {}); // Of a file that is not read to its end.
  }
}

async function readable(file: string): Promise<void> {
  try {
    if ((await Deno.stat(file)).isFile) return;
  } catch (error) {
    const why = error instanceof Deno.errors.NotFound ? "there is no such file" : String(error);
    throw new DataError(`Cannot read it: ${why}`, { file });
  }
  throw new DataError("Cannot read it: it is a directory; name a file", { file });
}

/**
 * The lines of a file, blank ones too, in blocks: a line alone is too little work for a promise.
 * `named`: what errors call the file.
 * @throws {DataError} If a line is too long.
 */
export async function* lineBlocks(
  file: string,
  { named = file }: { named?: string } = {},
): AsyncGenerator<LineBlock> {
  await readable(file);
  yield* blocksOf(chunksOf(file), named);
}

/** The lines of a file's bytes, which errors call `named`. */
export async function* blocksOf(
  chunks: AsyncIterable<Uint8Array>,
  named: string,
): AsyncGenerator<LineBlock> {
  let room = new Uint8Array(CHUNK_BYTES); // For all blocks: new ones would be garbage.
  let held = 0;
  let line = 1;
  let start = 0;
  for await (const chunk of chunks) {
    room = withRoom(room, { held, more: chunk.length + 1 });
    room.set(chunk, held);
    const begun = held;
    held += chunk.length;
    const end = chunk.lastIndexOf(NEWLINE) + 1;
    if (end > 0) {
      const bytes = room.subarray(0, begun + end);
      const ends = newlinesIn(bytes);
      yield { line, start, bytes, ends };
      line += ends.length;
      start += bytes.length;
      room.copyWithin(0, bytes.length, held);
      held -= bytes.length;
    }
    if (held > LINE_BYTES_MAX) {
      throw new DataError(`the line has more than ${LINE_BYTES_MAX} bytes; is this JSONL?`, {
        file: named,
        line,
      });
    }
  }
  if (held === 0) return;
  room[held] = NEWLINE;
  yield { line, start, bytes: room.subarray(0, held + 1), ends: [held] };
}

/** The buffer, or a larger one with the same beginning. */
function withRoom(
  room: Uint8Array<ArrayBuffer>,
  { held, more }: { held: number; more: number },
): Uint8Array<ArrayBuffer> {
  if (held + more <= room.length) return room;
  const larger = new Uint8Array(2 * (held + more));
  larger.set(room.subarray(0, held));
  return larger;
}

/** The place of each newline. */
export function newlinesIn(bytes: Uint8Array): number[] {
  const places: number[] = [];
  for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) {
    places.push(at);
  }
  return places;
}

/** The lines of a block. Bytes that are not UTF-8 are marked in the texts of their lines. */
export function* linesIn(block: LineBlock): Generator<TextLine> {
  for (const piece of piecesOf(block)) yield* linesOf(piece, strictText(piece.bytes));
}

/** A block cut at newlines into parts whose texts are small. */
function* piecesOf({ line, start, bytes, ends }: LineBlock): Generator<LineBlock> {
  let [from, first] = [0, 0];
  for (const [i, end] of ends.entries()) {
    if (end - from < PIECE_BYTES && i + 1 < ends.length) continue;
    yield {
      line: line + first,
      start: start + from,
      bytes: bytes.subarray(from, end + 1),
      ends: ends.slice(first, i + 1).map((place) => place - from),
    };
    [from, first] = [end + 1, i + 1];
  }
}

/** `whole`: the text of all, since a call for each line would take longer than to parse the line. */
function* linesOf(
  { line, start, bytes, ends }: LineBlock,
  whole: string | null,
): Generator<TextLine> {
  let [from, at] = [0, 0];
  for (const end of ends) {
    const length = end - from;
    if (whole === null) {
      yield { line, start: start + from, length, text: utf8Text(bytes.subarray(from, end)) };
    } else {
      const newline = whole.indexOf("\n", at);
      yield { line, start: start + from, length, text: whole.slice(at, newline) };
      at = newline + 1;
    }
    from = end + 1;
    line++;
  }
}

/**
 * The objects of a block's lines, without blank ones. `placeOf`: what an error says of a line.
 * @throws {DataError} At the first line that is not JSON or not an object.
 */
export function* rowsIn(
  block: LineBlock,
  placeOf: (line: number) => DataPlace,
): Generator<RowLine> {
  for (const piece of piecesOf(block)) {
    const { line, start, ends } = piece;
    const whole = strictText(piece.bytes);
    // Only an escape writes half of a surrogate pair into UTF-8.
    const unicode = whole !== null && !whole.includes("\\u");
    const together = whole === null ? null : parsedTogether(whole, ends.length);
    if (together === null) {
      for (const { text, ...at } of linesOf(piece, whole)) {
        const columns = parseLine(text, placeOf(at.line));
        if (columns !== null) yield { ...at, columns, unicode };
      }
      continue;
    }
    let from = 0;
    for (let i = 0; i < together.length; i++) {
      const [columns, end] = [together[i]!, ends[i]!];
      yield { line: line + i, start: start + from, length: end - from, columns, unicode };
      from = end + 1;
    }
  }
}

/** Between two lines that are parsed together. No file knows it, so none can pretend to have it. */
const BETWEEN = crypto.getRandomValues(new Uint32Array(1))[0]!;

/**
 * The objects of whole lines in a text, each with its newline; null: they must be parsed one by one,
 * as a line is no object or has a number at risk. One text is parsed in half of the time.
 */
function parsedTogether(text: string, lines: number): Columns[] | null {
  if (isAtRisk(text)) return null;
  let values: unknown[];
  try {
    values = JSON.parse(`[${text.slice(0, -1).replaceAll("\n", `,${BETWEEN},`)}]`);
  } catch {
    return null;
  }
  // A line can close what the previous one has opened, but then what is between them is inside.
  if (values.length !== 2 * lines - 1) return null;
  const rows = new Array<Columns>(lines);
  for (let i = 0; i < lines; i++) {
    const row = values[2 * i];
    if (!isObject(row) || (i > 0 && values[2 * i - 1] !== BETWEEN)) return null;
    rows[i] = row;
  }
  return rows;
}

function isObject(value: unknown): value is Columns {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/**
 * The object of a line; null if the line is blank. Bytes that are not UTF-8 are marked in its texts:
 * `readRow` refuses them with their field.
 * @throws {DataError} If it is not JSON or not an object.
 */
export function parseLine(line: string, place: DataPlace): Columns | null {
  const text = line.trim();
  return text === "" ? null : parse(text, place);
}

function parse(text: string, place: DataPlace): Columns {
  let value: unknown;
  if (text.startsWith("[")) {
    throw new DataError(
      "the line begins a JSON array; write each of its objects on a separate line, as " +
        "`jq -c '.[]'` does",
      place,
    );
  }
  try {
    value = parseExactly(text);
  } catch (error) {
    const why = (error as Error).message;
    throw new DataError(`the line is not JSON (${why}); every line must be one JSON object`, place);
  }
  if (isObject(value)) return value;
  throw new DataError(
    "the line is JSON but not an object; every line must be one JSON object",
    place,
  );
}
