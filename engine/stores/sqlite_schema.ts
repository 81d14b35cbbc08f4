import { DatabaseSync } from "node:sqlite";
import { sha256Hex } from "../canonical.ts";
import { EngineError, InfrastructureError, InvalidInputError } from "../errors.ts";

/** Changes with the text of the tables. */
const SCHEMA_VERSION = 4;
const TABLES = `
  CREATE TABLE holdfast_schema (version INTEGER NOT NULL, checksum TEXT NOT NULL);
  CREATE TABLE runs (
    no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, status TEXT NOT NULL,
    epoch INTEGER NOT NULL, last_seq INTEGER NOT NULL,
    entry TEXT NOT NULL, graph TEXT NOT NULL, graph_hash TEXT NOT NULL, config TEXT NOT NULL, packages TEXT NOT NULL,
    owner TEXT, lease_until_ms INTEGER NOT NULL, requests TEXT NOT NULL, error TEXT,
    created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL
  , queue TEXT, priority INTEGER NOT NULL DEFAULT 0, needs TEXT NOT NULL DEFAULT '{}', parent TEXT, home TEXT, journal INTEGER NOT NULL DEFAULT 1);
  CREATE TABLE journal (
    run_no INTEGER NOT NULL REFERENCES runs (no), seq INTEGER NOT NULL, epoch INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL, key TEXT NOT NULL, input_hash TEXT, value TEXT NOT NULL
  );
  CREATE UNIQUE INDEX journal_seq ON journal (run_no, seq);
  CREATE INDEX journal_kind ON journal (run_no, kind, seq);
  CREATE INDEX journal_key ON journal (run_no, key, seq);
  CREATE TABLE identity (id TEXT NOT NULL, since_ms INTEGER NOT NULL);
  INSERT INTO identity VALUES
    (lower(hex(randomblob(16))), CAST(unixepoch('subsec') * 1000 AS INTEGER));
`;

let known: string | undefined;

/** Of SQLite's own text of the tables. */
function expectedChecksum(): string {
  if (known) return known;
  using db = new DatabaseSync(":memory:");
  createTables(db);
  return known = checksum(db);
}

function checksum(db: DatabaseSync): string {
  return sha256Hex(statementsOf(db).sort().join(";\n"));
}

/** Creates the tables in an empty database. */
export function createTables(db: DatabaseSync): void {
  db.exec(TABLES);
}

/**
 * Creates the tables in a new file; refuses a file of another version of Holdfast, of a different
 * program, or with altered tables.
 */
export function ensureSchema(db: DatabaseSync, path: string): void {
  if (isCurrent(db)) return;
  // Two processes may open a file at once: the second finds the work done.
  db.exec("BEGIN IMMEDIATE");
  try {
    if (statementsOf(db).length === 0) {
      createTables(db);
      db.prepare("INSERT INTO holdfast_schema VALUES (?, ?)").run(
        SCHEMA_VERSION,
        expectedChecksum(),
      );
    } else if (!isCurrent(db)) throw foreign(db, path);
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

function isCurrent(db: DatabaseSync): boolean {
  return checksum(db) === expectedChecksum() && versionOf(db) === SCHEMA_VERSION;
}

function foreign(db: DatabaseSync, path: string): InvalidInputError {
  if (!statementsOf(db).some((one) => one.startsWith("CREATE TABLE holdfast_schema"))) {
    return new InvalidInputError(
      `Cannot open ${path} as a journal: it is the database of a different program`,
      { path },
    );
  }
  const version = versionOf(db);
  if (version !== SCHEMA_VERSION) {
    return new InvalidInputError(
      `Cannot open ${path} because its schema is version ${version} and this Holdfast's is ` +
        `${SCHEMA_VERSION}: use the Holdfast that wrote it, or a different --home`,
      { path, version, known: SCHEMA_VERSION },
    );
  }
  const [actual, expected] = [checksum(db), expectedChecksum()];
  return new InvalidInputError(
    `Cannot open ${path} because its tables are not those of schema version ${version}: ` +
      `checksum is ${actual}, expected ${expected}. ` +
      "Something else has changed the file: restore it, or use another --home",
    { path, version, checksum: actual, expected },
  );
}

/** 0 if no version is recorded. */
function versionOf(db: DatabaseSync): number {
  const row = db.prepare("SELECT version FROM holdfast_schema").get() as
    | { version: number }
    | undefined;
  return row?.version ?? 0;
}

function statementsOf(db: DatabaseSync): string[] {
  const rows = db.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").all() as {
    sql: string;
  }[];
  return rows.map((row) => row.sql);
}

type Remedy = { why: string; retryable?: boolean; damaged?: boolean };

/** What SQLite says, and the fix. `damaged`: what was recorded may be gone. */
const REMEDIES: [RegExp, Remedy][] = [
  [/full/, { why: "the disk is full. Free some space, then resume" }],
  [/readonly|read-only/, {
    why: "the file or its directory is read-only. Allow writing, then resume",
  }],
  [/malformed|not a database/, {
    why: "the file is damaged. Restore it from a copy, or use a different --home",
    damaged: true,
  }],
  [/locked|busy/, {
    why: "another process holds its lock. Try again when that process has finished",
    retryable: true,
  }],
  [/unable to open/, {
    why: "the file cannot be opened or created. Check the directory and its permissions",
  }],
  [/disk I\/O/, {
    why: "the disk reports an error. Check the disk, then resume",
    damaged: true,
  }],
];

/**
 * An error of SQLite as an engine error. Unless the file is damaged, what was acknowledged before
 * is in it; the failed transaction left nothing.
 */
export function asStoreError(error: unknown, what: string, path: string): EngineError {
  if (error instanceof EngineError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const remedy = REMEDIES.find(([pattern]) => pattern.test(message))?.[1];
  const { why, retryable = false, damaged = false } = remedy ?? { why: "SQLite refuses" };
  const kept = damaged ? "" : "Nothing recorded is lost ";
  return new InfrastructureError(
    `Cannot ${what} in ${path} because ${why}. ${kept}(${message})`,
    { path, sqlite: message },
    { cause: error, retryable },
  );
}
