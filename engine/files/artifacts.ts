import { dirname } from "node:path";
import { statfsSync } from "node:fs";
import { canonicalJson, sha256Hex } from "../canonical.ts";
import { type Clock, systemClock } from "../clock.ts";
import { BadDataError, EngineError, InfrastructureError, LostRecordError } from "../errors.ts";
import { PRIVATE_DIRECTORY, PRIVATE_FILE } from "./private_files.ts";
import { isNamed, removeTree, REMOVING } from "./removal.ts";

/** The name of an immutable file: the sha256 of its bytes (hex) and its length. */
export type ArtifactRef = { sha256: string; bytes: number };

type ArtifactOptions = {
  /** Recently read bytes kept in memory; 0 keeps none. */
  cache_bytes?: number;
  clock?: Clock;
  /** Writes a new file and makes its content durable. Passed in so that tests can fill the disk. */
  writeFile?: (path: string, bytes: Uint8Array) => Promise<void>;
};

/**
 * A put takes seconds: a temporary file that nobody has touched for this long belongs to a dead
 * process.
 */
const STALE_MS = 3_600_000;
/** Names in `tmp`: of an artifact that is being written, or that a collector removes. */
export const TEMPORARY = new RegExp(
  `\\d+\\.[0-9a-f-]{36}|gc\\.[0-9a-f]{64}|${REMOVING.source}`,
);
const DURABLE_NAMES_MAX = 4096;
const CACHE_BYTES = 64 * 1024 * 1024;
/**
 * Shorter files are written without giving up the thread: that costs less than a turn of the event
 * loop.
 */
const AT_ONCE_BYTES = 1024 * 1024;

/**
 * Content-addressed files at DIR/<first two digits>/<sha256>. A file appears under its name whole
 * or not at all: it is written under a temporary name, made durable, renamed, and the rename made
 * durable.
 */
export class ArtifactStore {
  /** Where its files are. */
  readonly dir: string;
  readonly #clock: Clock;
  readonly #writeFile: (path: string, bytes: Uint8Array) => Promise<void>;
  readonly #cache: ByteCache;
  readonly #putting = new Map<string, Promise<void>>();
  /** Names of artifacts that this store has made durable, newest last. */
  readonly #durable = new Set<string>();
  #swept: Promise<void> | undefined;

  /** In `dir`, which is created with the first artifact. */
  constructor(dir: string, options: ArtifactOptions = {}) {
    this.dir = dir;
    this.#clock = options.clock ?? systemClock;
    this.#writeFile = options.writeFile ?? writeDurably;
    this.#cache = new ByteCache(options.cache_bytes ?? CACHE_BYTES);
  }

  /** The file of an artifact; it need not exist. */
  path(ref: ArtifactRef): string {
    if (!/^[0-9a-f]{64}$/.test(ref.sha256)) {
      throw new BadDataError(
        `Cannot name an artifact because its sha256 is not 64 hexadecimal digits: '${ref.sha256}'`,
      );
    }
    return `${this.dir}/${ref.sha256.slice(0, 2)}/${ref.sha256}`;
  }

  /** Durable when the promise settles. Putting the same bytes twice writes one file. */
  async put(bytes: Uint8Array): Promise<ArtifactRef> {
    const ref = { sha256: sha256Hex(bytes), bytes: bytes.byteLength };
    const running = this.#putting.get(ref.sha256);
    if (running) {
      await running;
      return ref;
    }
    const work = this.#place(ref, bytes);
    this.#putting.set(ref.sha256, work);
    try {
      await work;
    } finally {
      this.#putting.delete(ref.sha256);
    }
    if (this.#cache.takes(bytes)) this.#cache.set(ref.sha256, bytes.slice());
    return ref;
  }

  /** Stores a value as canonical JSON: equal values are one artifact. */
  putJson(value: unknown): Promise<ArtifactRef> {
    return this.put(new TextEncoder().encode(canonicalJson(value)));
  }

  /**
   * The bytes, verified against their name. They are a copy that the caller may alter.
   * @throws {LostRecordError} If the file is missing, torn or altered.
   */
  async get(ref: ArtifactRef): Promise<Uint8Array> {
    const cached = this.#cache.get(ref.sha256);
    if (cached) return cached.slice();
    const bytes = await this.#read(ref);
    this.#cache.set(ref.sha256, bytes);
    return this.#cache.has(ref.sha256) ? bytes.slice() : bytes;
  }

  /** Reads the file itself, even if it is cached in memory. @throws {LostRecordError} As `get`. */
  async check(ref: ArtifactRef): Promise<void> {
    await this.#read(ref);
  }

  /** The file of this name, if its length is not known. @throws {LostRecordError} As `get`. */
  async readNamed(sha256: string): Promise<Uint8Array> {
    return await this.#read({ sha256, bytes: await this.#sizeNamed(sha256) });
  }

  /**
   * The bytes of this name as they are, whether or not they are torn; null: there is no such file.
   * @throws {LostRecordError} If they cannot be read, so that what they refer to is not known.
   */
  async readUnchecked(sha256: string): Promise<Uint8Array | null> {
    const ref = { sha256, bytes: 0 };
    return await Deno.readFile(this.path(ref)).catch((error) => {
      if (error instanceof Deno.errors.NotFound) return null;
      throw this.#unreadable(error, ref);
    });
  }

  #unreadable(error: unknown, ref: ArtifactRef): Error {
    const path = this.path(ref);
    return error instanceof Deno.errors.IsADirectory
      ? damaged("it is a directory", ref, path)
      : asDiskError(error, "read an artifact", path);
  }

  async #sizeNamed(sha256: string): Promise<number> {
    return (await Deno.stat(this.path({ sha256, bytes: 0 })).catch(() => null))?.size ?? 0;
  }

  async #read(ref: ArtifactRef): Promise<Uint8Array> {
    const path = this.path(ref);
    const bytes = await Deno.readFile(path).catch((error) => {
      if (error instanceof Deno.errors.NotFound) throw damaged("it is missing", ref, path);
      throw this.#unreadable(error, ref);
    });
    if (bytes.byteLength !== ref.bytes) {
      throw damaged(`it has ${bytes.byteLength} bytes, not ${ref.bytes}`, ref, path);
    }
    const actual = sha256Hex(bytes);
    if (actual !== ref.sha256) throw damaged(`its sha256 is ${actual}`, ref, path);
    return bytes;
  }

  /**
   * The value that `putJson` stored. @throws {InfrastructureError} If the file is missing or
   * damaged.
   */
  async getJson(ref: ArtifactRef): Promise<unknown> {
    return JSON.parse(new TextDecoder().decode(await this.get(ref)));
  }

  /** Whether a file of that name and length is there. Its bytes are verified when they are read. */
  async has(ref: ArtifactRef): Promise<boolean> {
    const found = await Deno.stat(this.path(ref)).catch(() => null);
    return found !== null && found.size === ref.bytes;
  }

  async #place(ref: ArtifactRef, bytes: Uint8Array): Promise<void> {
    const path = this.path(ref);
    const folder = dirname(path);
    try {
      this.#swept ??= this.#sweep();
      await this.#swept.catch((error) => {
        // The next put tries again: someone may have fixed the directory by then.
        this.#swept = undefined;
        throw error;
      });
      // First, because a new artifact must not look unreachable.
      const there = renew(path);
      if (there && this.#durable.has(ref.sha256) && sizeOf(path) === ref.bytes) return;
      if (!there || !await holds(path, ref)) await this.#writeAndRename(path, bytes);
      // Even if it existed: the other writer may not have reached this line.
      await syncDirectory(folder);
      this.#remember(ref.sha256);
    } catch (error) {
      throw asDiskError(error, `write an artifact of ${bytes.byteLength} bytes`, this.dir);
    }
  }

  async #writeAndRename(path: string, bytes: Uint8Array): Promise<void> {
    const temporary = `${this.dir}/tmp/${Deno.pid}.${crypto.randomUUID()}`;
    try {
      await this.#writeFile(temporary, bytes);
      Deno.renameSync(temporary, path);
    } catch (error) {
      await Deno.remove(temporary).catch(() => {}); // The first error is the one that matters.
      throw error;
    }
  }

  #remember(name: string): void {
    if (this.#durable.size >= DURABLE_NAMES_MAX) {
      this.#durable.delete(this.#durable.values().next().value!);
    }
    this.#durable.add(name);
  }

  /**
   * Makes the folders, all at once so that no put pays for one, and removes what dead writers left.
   */
  async #sweep(): Promise<void> {
    const folder = `${this.dir}/tmp`;
    await Deno.mkdir(folder, { recursive: true, mode: PRIVATE_DIRECTORY });
    const there = new Set(Array.from(Deno.readDirSync(this.dir), ({ name }) => name));
    for (let i = 0; i < 256; i++) {
      const name = i.toString(16).padStart(2, "0");
      if (!there.has(name)) {
        Deno.mkdirSync(`${this.dir}/${name}`, { recursive: true, mode: PRIVATE_DIRECTORY });
      }
    }
    // Even if they existed: another process may have just made them.
    await syncDirectory(this.dir);
    for await (const entry of Deno.readDir(folder)) {
      // Belongs to a collector, which finishes its own work after a kill.
      if (entry.name.startsWith("gc.") || !isNamed(entry.name, TEMPORARY)) continue;
      const path = `${folder}/${entry.name}`;
      const changed = (await Deno.stat(path).catch(() => null))?.mtime?.getTime();
      const stale = changed !== undefined && this.#clock.now() - changed > STALE_MS;
      if (!stale) continue;
      const how = { home: dirname(this.dir), named: TEMPORARY, owner: null };
      await removeTree(path, how).catch(() => {}); // It is not ours, or another process sweeps too.
    }
  }
}

/** Evicts the least recently read entries; bounded by bytes. */
class ByteCache {
  readonly #max: number;
  readonly #entries = new Map<string, Uint8Array>();
  #bytes = 0;

  constructor(max: number) {
    this.#max = max;
  }

  has(name: string): boolean {
    return this.#entries.has(name);
  }

  get(name: string): Uint8Array | undefined {
    const bytes = this.#entries.get(name);
    if (!bytes) return undefined;
    this.#entries.delete(name);
    this.#entries.set(name, bytes); // A Map keeps insertion order: the newest is last.
    return bytes;
  }

  /** One entry may fill at most a quarter, so that a large file does not push all others out. */
  takes(bytes: Uint8Array): boolean {
    return bytes.byteLength <= this.#max / 4;
  }

  set(name: string, bytes: Uint8Array): void {
    if (!this.takes(bytes) || this.#entries.has(name)) return;
    this.#entries.set(name, bytes);
    this.#bytes += bytes.byteLength;
    for (const [oldest, old] of this.#entries) {
      if (this.#bytes <= this.#max) return;
      this.#entries.delete(oldest);
      this.#bytes -= old.byteLength;
    }
  }
}

/**
 * Whether the file holds exactly what its name says. The next put of its content replaces a damaged
 * one.
 */
async function holds(path: string, ref: ArtifactRef): Promise<boolean> {
  if (sizeOf(path) !== ref.bytes) return false;
  const bytes = await Deno.readFile(path).catch((error) => {
    // A collector is removing it: write it again.
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
  return bytes !== undefined && sha256Hex(bytes) === ref.sha256;
}

/** Updates a file's time to now; false if it does not exist. */
function renew(path: string): boolean {
  try {
    const now = new Date();
    Deno.utimeSync(path, now, now);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

/** Null if there is no such file. */
function sizeOf(path: string): number | null {
  try {
    return Deno.statSync(path).size;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

async function writeDurably(path: string, bytes: Uint8Array): Promise<void> {
  using file = Deno.openSync(path, { write: true, createNew: true, mode: PRIVATE_FILE });
  for (let written = 0; written < bytes.byteLength;) {
    const remaining = bytes.subarray(written);
    written += remaining.byteLength <= AT_ONCE_BYTES
      ? file.writeSync(remaining)
      : await file.write(remaining);
  }
  await file.sync();
}

async function syncDirectory(path: string): Promise<void> {
  using directory = Deno.openSync(path);
  await directory.sync();
}

function damaged(what: string, ref: ArtifactRef, path: string): LostRecordError {
  return new LostRecordError(
    `Cannot read artifact ${path} because ${what}: expected ${ref.bytes} bytes with sha256 ` +
      `${ref.sha256}. ` +
      "Restore the file from a copy, or fork the run from a round before the one that created it",
    { path, sha256: ref.sha256, bytes: ref.bytes },
  );
}

/** A failed file operation, with what a person needs to fix it. */
function asDiskError(error: unknown, what: string, path: string): EngineError {
  if (error instanceof EngineError) return error;
  const code = (error as { code?: string }).code ?? "";
  const free_bytes = freeBytes(path);
  const full = code === "ENOSPC" || code === "EDQUOT";
  const why = full
    ? `the disk of ${path} is full: ${free_bytes} bytes free. Free some space, then resume`
    : `${path} does not allow it: ${(error as Error).message}`;
  return new InfrastructureError(`Cannot ${what} because ${why}`, { path, code, free_bytes }, {
    cause: error,
    retryable: !full,
  });
}

/** Free bytes for this user on the disk of a directory; null if unknown. */
export function freeBytes(path: string): number | null {
  try {
    const { bavail, bsize } = statfsSync(path);
    return bavail * bsize;
  } catch { // Callers only advise by it, or colour a message about another error.
    return null;
  }
}
