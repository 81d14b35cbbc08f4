import { createHash } from "node:crypto";
import { DataError } from "./errors.ts";

const LINE_BYTES_MAX = 64 * 1024 * 1024;
const NEWLINE = 10;

type Line = { line: number; value: Record<string, unknown> };

/**
 * Reads a JSONL file line by line: memory is one line, not the file. `onLine` sees the bytes of
 * every line read, in order.
 * @throws {DataError} With file and line, if a line is not UTF-8, not JSON or not an object.
 */
export async function* readJsonLines(
  file: string,
  onLine?: (bytes: Uint8Array) => void,
): AsyncGenerator<Line> {
  let line = 0;
  for await (const bytes of byteLines(file)) {
    line++;
    onLine?.(bytes);
    const text = decode(bytes, { file, line }).trim();
    if (text !== "") yield { line, value: parse(text, { file, line }) };
  }
}

/**
 * Name of a file's content: sha256 and length of its bytes, so that a resumed run notices a changed
 * file.
 */
export async function digestFile(file: string): Promise<{ sha256: string; bytes: number }> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of (await open(file)).readable) {
    hash.update(chunk);
    bytes += chunk.length;
  }
  return { sha256: hash.digest("hex"), bytes };
}

async function open(file: string): Promise<Deno.FsFile> {
  try {
    if ((await Deno.stat(file)).isFile) return await Deno.open(file);
  } catch (error) {
    const why = error instanceof Deno.errors.NotFound ? "there is no such file" : String(error);
    throw new DataError(`Cannot read it: ${why}`, { file });
  }
  throw new DataError("Cannot read it: it is a directory; name a JSONL file", { file });
}

async function* byteLines(file: string): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [];
  let held = 0;
  let line = 1;
  for await (const chunk of (await open(file)).readable) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      yield join([...parts, chunk.subarray(start, end)]);
      line++;
      parts = [];
      held = 0;
      start = end + 1;
    }
    parts.push(chunk.slice(start));
    held += chunk.length - start;
    if (held > LINE_BYTES_MAX) {
      throw new DataError(`the line has more than ${LINE_BYTES_MAX} bytes; is this JSONL?`, {
        file,
        line,
      });
    }
  }
  if (held > 0) yield join(parts);
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

function decode(bytes: Uint8Array, place: { file: string; line: number }): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new DataError("the line is not UTF-8 text; save the file as UTF-8", place);
  }
}

function parse(text: string, place: { file: string; line: number }): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
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
