import { DatabaseSync } from "node:sqlite";
import { sha256Hex } from "../canonical.ts";
import { EngineError, InfrastructureError, InvalidInputError } from "../errors.ts";

/**
 * Version n is what the first n lists make of an empty file. A list that was released never
 * changes.
 */
const VERSIONS: readonly (readonly string[])[] = [[
  `CREATE TABLE holdfast_schema (version INTEGER NOT NULL, checksum TEXT NOT NULL)`,
  `CREATE TABLE runs (
    no INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, status TEXT NOT NULL,
    epoch INTEGER NOT NULL, last_seq INTEGER NOT NULL,
    entry TEXT NOT NULL, graph TEXT NOT NULL, graph_hash TEXT NOT NULL, config TEXT NOT NULL, packages TEXT NOT NULL,
    owner TEXT, lease_until_ms INTEGER NOT NULL, requests TEXT NOT NULL, error TEXT,
    created_ms INTEGER NOT NULL, updated_ms INTEGER NOT NULL
  )`,
  `CREATE TABLE journal (
    run_no INTEGER NOT NULL REFERENCES runs (no), seq INTEGER NOT NULL, epoch INTEGER NOT NULL, at_ms INTEGER NOT NULL,
    kind TEXT NOT NULL, key TEXT NOT NULL, input_hash TEXT, value TEXT NOT NULL
  )`,
  `CREATE UNIQUE INDEX journal_seq ON journal (run_no, seq)`,
  `CREATE INDEX journal_kind ON journal (run_no, kind, seq)`,
  `CREATE INDEX journal_key ON journal (run_no, key, seq)`,
], [
  `ALTER TABLE runs ADD COLUMN queue TEXT`,
  `ALTER TABLE runs ADD COLUMN priority INTEGER NOT NULL DEFAULT 0`,
  `ALTER TABLE runs ADD COLUMN needs TEXT NOT NULL DEFAULT '{}'`,
  `ALTER TABLE runs ADD COLUMN parent TEXT`,
], [
  `ALTER TABLE runs ADD COLUMN home TEXT`,
  `CREATE TABLE identity (id TEXT NOT NULL, since_ms INTEGER NOT NULL)`,
  `INSERT INTO identity SELECT lower(hex(randomblob(16))),
    min(CAST(unixepoch('subsec') * 1000 AS INTEGER),
      coalesce((SELECT min(created_ms) FROM runs), 9e15))`,
], [
  `ALTER TABLE runs ADD COLUMN journal INTEGER NOT NULL DEFAULT 1`,
]];
const SCHEMA_VERSION = VERSIONS.length;

function checksum(statements: readonly string[]): string {
  return sha256Hex([...statements].sort().join(";\n"));
}

let known: string[] | undefined;

/**
 * The checksum of each version from 0, the empty file: SQLite's own text of the tables after each
 * list of changes.
 */
function checksums(): string[] {
  if (known) return known;
  const db = new DatabaseSync(":memory:");
  const found = [checksum([])];
  for (const statements of VERSIONS) {
    for (const statement of statements) db.exec(statement);
    found.push(checksum(statementsOf(db)));
  }
  db.close();
  return known = found;
}

/** Creates the tables in a database that nothing else sees and that is never opened again. */
export function createTables(db: DatabaseSync): void {
  db.exec(VERSIONS.flat().join(";"));
}

/**
 * Creates the tables in a new file and upgrades those of an older version; refuses a file of a
 * newer Holdfast, of a different program, or with altered tables.
 */
export function ensureSchema(db: DatabaseSync, path: string): void {
  const expected = checksums();
  if (checksum(statementsOf(db)) === expected.at(-1) && versionOf(db) === SCHEMA_VERSION) return;
  // Two processes may open a file at once: the second finds the work done.
  db.exec("BEGIN IMMEDIATE");
  try {
    migrate(db, { path, expected });
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

function migrate(
  db: DatabaseSync,
  { path, expected }: { path: string; expected: readonly string[] },
): void {
  const statements = statementsOf(db);
  if (
    statements.length > 0 &&
    !statements.some((one) => one.startsWith("CREATE TABLE holdfast_schema"))
  ) {
    throw new InvalidInputError(
      `Cannot open ${path} as a journal: it is the database of a different program`,
      { path },
    );
  }
  const version = statements.length === 0 ? 0 : versionOf(db);
  if (version > SCHEMA_VERSION) {
    throw new InvalidInputError(
      `Cannot open ${path} because its schema is version ${version} and this Holdfast knows ` +
        `up to ${SCHEMA_VERSION}: ` +
        "use the newer Holdfast that wrote it, or a different --home",
      { path, version, known: SCHEMA_VERSION },
    );
  }
  const actual = checksum(statements);
  if (actual !== expected[version]) {
    throw new InvalidInputError(
      `Cannot open ${path} because its tables are not those of schema version ${version}: ` +
        `checksum is ${actual}, ` +
        `expected ${
          expected[version]
        }. Something else has changed the file: restore it, or use another --home`,
      { path, version, checksum: actual, expected: expected[version] },
    );
  }
  for (const statement of VERSIONS.slice(version).flat()) db.exec(statement);
  db.exec("DELETE FROM holdfast_schema");
  db.prepare("INSERT INTO holdfast_schema VALUES (?, ?)").run(
    SCHEMA_VERSION,
    expected[SCHEMA_VERSION]!,
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
