import { createHash } from "node:crypto";
import { DataError, type DataPlace } from "../errors.ts";
import { parseExactly } from "../exact_json.ts";
import { utf8Text } from "../utf8_text.ts";

const LINE_BYTES_MAX = 64 * 1024 * 1024;
const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 10;

/**
 * One line of a file: its number from 1, its first byte in the file, and its bytes, which are valid
 * until the next line is read.
 */
type ByteLine = { line: number; start: number; bytes: Uint8Array };
type Line = { line: number; value: Record<string, unknown> };

/**
 * Reads a JSONL file line by line: memory is one line, not the file.
 * @throws {DataError} With file and line, if a line is not JSON or not an object.
 */
export async function* readJsonLines(file: string): AsyncGenerator<Line> {
  for await (const { line, bytes } of byteLines(file)) {
    const value = parseLine(bytes, { file, line });
    if (value !== null) yield { line, value };
  }
}

/**
 * Name of a file's content: sha256 and length of its bytes, so that a resumed run notices a changed
 * file.
 */
export async function digestFile(file: string): Promise<{ sha256: string; bytes: number }> {
  await readable(file);
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of chunksOf(file)) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { sha256: hash.digest("hex"), bytes };
}

/**
 * The bytes of a file, all through one buffer: a chunk is gone when the next is read. A stream's
 * buffers are garbage that piles up faster than it is collected.
 */
async function* chunksOf(file: string): AsyncGenerator<Uint8Array> {
  using open = await Deno.open(file);
  const buffer = new Uint8Array(CHUNK_BYTES);
  for (let read = await open.read(buffer); read !== null; read = await open.read(buffer)) {
    yield buffer.subarray(0, read);
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
 * The lines of a file without their newlines, blank ones too. `named`: what errors call the file.
 * @throws {DataError} If a line is too long.
 */
export async function* byteLines(
  file: string,
  { named = file }: { named?: string } = {},
): AsyncGenerator<ByteLine> {
  await readable(file);
  yield* linesOf(chunksOf(file), named);
}

/** The lines of a file's bytes, which errors call `named`. */
export async function* linesOf(
  chunks: AsyncIterable<Uint8Array>,
  named: string,
): AsyncGenerator<ByteLine> {
  let parts: Uint8Array[] = [];
  let held = 0;
  let line = 1;
  let start = 0;
  for await (const chunk of chunks) {
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      const bytes = join([...parts, chunk.subarray(from, end)]);
      yield { line, start, bytes };
      line++;
      start += bytes.length + 1;
      parts = [];
      held = 0;
      from = end + 1;
    }
    parts.push(chunk.slice(from));
    held += chunk.length - from;
    if (held > LINE_BYTES_MAX) {
      throw new DataError(`the line has more than ${LINE_BYTES_MAX} bytes; is this JSONL?`, {
        file: named,
        line,
      });
    }
  }
  if (held > 0) yield { line, start, bytes: join(parts) };
}

function join(parts: Uint8Array[]): Uint8Array {
  if (parts.length === 1) return parts[0]!;
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/**
 * The object of a line; null if the line is blank. Bytes that are not UTF-8 are marked in its texts:
 * `readRow` refuses them with their field.
 * @throws {DataError} If it is not JSON or not an object.
 */
export function parseLine(bytes: Uint8Array, place: DataPlace): Record<string, unknown> | null {
  const text = utf8Text(bytes).trim();
  return text === "" ? null : parse(text, place);
}

function parse(text: string, place: DataPlace): Record<string, unknown> {
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
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    return value as Record<string, unknown>;
  }
  throw new DataError(
    "the line is JSON but not an object; every line must be one JSON object",
    place,
  );
}
