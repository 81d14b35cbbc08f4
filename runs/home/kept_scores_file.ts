import { createHash } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { z } from "zod";
import { removeFile } from "../../data/mod.ts";
import type { KeptScore, KeptScores } from "../../rollouts/mod.ts";

const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;
const BUSY_MS = 1000;
const PAGE_BYTES = 4096;

const Value = z.strictObject({
  score: z.number().nullable(),
  metrics: z.record(z.string(), z.number()),
  token_scores: z.array(z.number()).optional(),
}) satisfies z.ZodType<KeptScore>;

/** What limits the file. */
export type KeptLimits = { entries_max: number; bytes_max: number };
const LIMITS: KeptLimits = { entries_max: 1_000_000, bytes_max: 2 ** 30 };

/**
 * Results of rewards in a file of a home, which all its runs and engines share. It may be removed
 * at any time. A damaged file is made again, and while it cannot be used nothing is kept. The
 * oldest results make room for new ones.
 */
export class KeptScoresFile implements KeptScores {
  readonly #path: string;
  readonly #limits: KeptLimits;
  readonly #say: (text: string) => void;
  #db: DatabaseSync | null = null;
  #state: "closed" | "open" | "unusable" = "closed";

  constructor(
    home: string,
    { say = () => {}, limits = LIMITS }: {
      say?: (text: string) => void;
      limits?: KeptLimits;
    } = {},
  ) {
    this.#path = `${home}/cache/scores/kept.db`;
    this.#say = say;
    this.#limits = limits;
  }

  find(keys: readonly string[]): (KeptScore | null)[] {
    const found = this.#using((db) => {
      const read = db.prepare("SELECT value FROM kept WHERE key = ?");
      return keys.map((key) => {
        const { value } = (read.get(key) ?? {}) as { value?: unknown };
        const [, digest, json] = /^(\w{16}) (.*)$/s.exec(String(value)) ?? [];
        if (json === undefined || digest !== digestOf(key, json)) return null;
        return Value.parse(JSON.parse(json));
      });
    });
    return found ?? keys.map(() => null);
  }

  keep(results: readonly (readonly [key: string, result: KeptScore])[]): void {
    this.#using((db) => {
      const add = db.prepare("INSERT OR IGNORE INTO kept (key, value) VALUES (?, ?)");
      for (const [key, result] of results) {
        const json = JSON.stringify(result);
        add.run(key, `${digestOf(key, json)} ${json}`);
      }
      const row = db.prepare("SELECT min(at) AS first, max(at) AS last FROM kept").get();
      const { first, last } = row as { first: number; last: number };
      const surplus = last - first + 1 - this.#limits.entries_max;
      // Some at once: the next ones then need no room made for them.
      if (surplus > 0) {
        const to = first + surplus + Math.floor(this.#limits.entries_max / 10);
        db.prepare("DELETE FROM kept WHERE at < ?").run(to);
      }
    });
  }

  close(): void {
    this.#db?.close();
    this.#db = null;
    this.#state = "closed";
  }

  #using<T>(work: (db: DatabaseSync) => T): T | null {
    for (const again of [true, false]) {
      if (this.#state === "unusable") return null;
      try {
        return work(this.#opened());
      } catch (error) {
        this.#failed(error as Error, again);
      }
    }
    return null;
  }

  #opened(): DatabaseSync {
    if (this.#db !== null) return this.#db;
    const dir = this.#path.slice(0, this.#path.lastIndexOf("/"));
    Deno.mkdirSync(dir, { recursive: true, mode: DIRECTORY_MODE });
    this.#db = new DatabaseSync(this.#path);
    Deno.chmodSync(this.#path, FILE_MODE); // Its other files get the same.
    this.#db.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA page_size = ${PAGE_BYTES}`);
    // Nothing is lost with it, so nothing waits for the disk.
    this.#db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF");
    this.#db.exec(`PRAGMA max_page_count = ${Math.ceil(this.#limits.bytes_max / PAGE_BYTES)}`);
    this.#db.exec(
      "CREATE TABLE IF NOT EXISTS kept " +
        "(at INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, value TEXT NOT NULL)",
    );
    this.#state = "open";
    return this.#db;
  }

  /** Removes a file that is damaged or full; another problem ends the use of it. */
  #failed({ message }: Error, again: boolean): void {
    try {
      this.#db?.close();
    } catch {
      // It is damaged.
    }
    this.#db = null;
    this.#state = "closed";
    const broken = /malformed|not a database|no such (table|column)|is full|corrupt/i.test(message);
    if (broken && again) {
      for (const end of ["", "-wal", "-shm"]) removeFile(this.#path + end);
      return;
    }
    this.#state = "unusable";
    this.#say(`results of rewards are not kept: ${this.#path}: ${message}`);
  }
}

/** A result is kept with its hash and its key's: what a torn page has is no result. */
function digestOf(key: string, json: string): string {
  return createHash("sha256").update(`${key} ${json}`).digest("hex").slice(0, 16);
}
