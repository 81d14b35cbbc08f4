import { createHash } from "node:crypto";
import { basename, dirname } from "node:path";
import type { ShippedFile } from "../configs/mod.ts";
import { writeAll } from "../data/mod.ts";
import { InfrastructureError, isNothing } from "../engine/mod.ts";

/** A connection that is silent for this long is given up. */
const SILENT_MS = 60_000;
const SAY_MS = 5_000;
const MIB = 2 ** 20;

/** Receives the progress of a download every few seconds. */
type OnProgress = (text: string) => void;

/** `absent`; `whole`: the listed one; `different`: a file of this name with other bytes. */
type Presence = "absent" | "whole" | "different";

/** What exists where a file belongs. */
export async function presence({ path, bytes, sha256 }: ShippedFile): Promise<Presence> {
  try {
    if ((await Deno.stat(path)).size !== bytes) return "different";
  } catch (error) {
    return unlessMissing(error, "absent");
  }
  return await hashOf(path) === sha256 ? "whole" : "different";
}

/**
 * Downloads a file and gives it its name once it is whole. Until then it is `PATH.partial`, which
 * the next call resumes. Two at once: the second waits for the first.
 * @throws {InfrastructureError} If it cannot be had, or is not the listed one.
 */
export async function download(
  file: ShippedFile,
  onProgress: OnProgress = () => {},
): Promise<void> {
  await Deno.mkdir(dirname(file.path), { recursive: true });
  const path = `${file.path}.partial`;
  using partial = await Deno.open(path, { write: true, create: true });
  await partial.lock(true);
  // The previous holder of the lock made it; then this is an empty new one.
  if (await presence(file) !== "absent") {
    return await Deno.remove(path).catch((error) => unlessMissing(error, undefined));
  }
  await receive(file, partial, onProgress);
  if (await hashOf(path) !== file.sha256) {
    await partial.truncate(0);
    throw refused(file, "the downloaded file is not the listed one: its SHA-256 differs");
  }
  await partial.syncData();
  await Deno.rename(path, file.path);
}

/** Appends what is still missing. */
async function receive(
  file: ShippedFile,
  partial: Deno.FsFile,
  onProgress: OnProgress,
): Promise<void> {
  const begun = (await partial.stat()).size;
  if (begun === file.bytes) return;
  const silence = new Silence();
  try {
    const from = begun < file.bytes ? begun : 0;
    const response = await fetch(file.url, { headers: headersOf(from), signal: silence.signal });
    if (!response.ok || response.body === null) {
      await response.body?.cancel();
      throw refused(file, `it answers ${response.status} ${response.statusText}`.trim());
    }
    const resumed = response.status === 206;
    if (!resumed) await partial.truncate(0);
    let got = await partial.seek(0, Deno.SeekMode.End);
    const progress = new Progress(file, onProgress);
    for await (const chunk of response.body) {
      silence.broken();
      got += chunk.length;
      if (got > file.bytes) {
        throw refused(file, `the server sends more than the listed ${file.bytes} bytes`);
      }
      await writeAll(partial, chunk);
      progress.at(got);
    }
    if (got < file.bytes) {
      throw refused(file, `the connection ended after ${got} of ${file.bytes} bytes`);
    }
  } catch (error) {
    if (error instanceof InfrastructureError) throw error;
    // `fetch` reports the network's failures as TypeError.
    if (!silence.signal.aborted && !(error instanceof TypeError)) throw error;
    throw refused(file, causeOf(error), error);
  } finally {
    silence.over();
  }
}

function unlessMissing<T>(error: unknown, value: T): T {
  if (isNothing(error)) return value;
  throw error;
}

function headersOf(from: number): Record<string, string> {
  // A range of the compressed bytes would not be a range of this file.
  return { "accept-encoding": "identity", ...(from > 0 && { range: `bytes=${from}-` }) };
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash("sha256");
  using file = await Deno.open(path);
  for await (const chunk of file.readable) hash.update(chunk);
  return hash.digest("hex");
}

function refused({ path, url }: ShippedFile, why: string, cause?: unknown): InfrastructureError {
  return new InfrastructureError(`Cannot fetch ${basename(path)} from ${url} because ${why}`, {
    path,
    url,
  }, {
    cause,
    retryable: false,
  });
}

/** The deepest cause that an error names, without the address, which our own message has. */
function causeOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error
    ? causeOf(cause)
    : message.replace(/^error sending request for url \(.*?\): /, "");
}

/** Ends a request that has gone silent. */
class Silence {
  readonly #ended = new AbortController();
  #timer = this.#start();

  get signal(): AbortSignal {
    return this.#ended.signal;
  }

  broken(): void {
    this.over();
    this.#timer = this.#start();
  }

  over(): void {
    clearTimeout(this.#timer);
  }

  #start(): ReturnType<typeof setTimeout> {
    return setTimeout(
      () => this.#ended.abort(new Error(`nothing arrived for ${SILENT_MS / 1000} s`)),
      SILENT_MS,
    );
  }
}

class Progress {
  readonly #file: ShippedFile;
  readonly #say: OnProgress;
  #reportedMs = performance.now();

  constructor(file: ShippedFile, say: OnProgress) {
    this.#file = file;
    this.#say = say;
  }

  at(got: number): void {
    if (performance.now() - this.#reportedMs < SAY_MS) return;
    this.#reportedMs = performance.now();
    const mib = (bytes: number) => Math.floor(bytes / MIB);
    this.#say(`${basename(this.#file.path)}: ${mib(got)} of ${mib(this.#file.bytes)} MiB`);
  }
}
