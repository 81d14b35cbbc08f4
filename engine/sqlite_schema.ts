import type { DatabaseSync } from "node:sqlite";
import { sha256Hex } from "./canonical.ts";
import { EngineError, InfrastructureError, InvalidInputError } from "./errors.ts";

/** Raise with every change of a statement below. */
const SCHEMA_VERSION = 1;

const STATEMENTS = [
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
];
const CHECKSUM = checksum(STATEMENTS);

function checksum(statements: string[]): string {
  return sha256Hex([...statements].sort().join(";\n"));
}

/** Creates the tables in a new file; refuses a file of a newer Holdfast, of another program, or with altered tables. */
export function ensureSchema(db: DatabaseSync, path: string): void {
  if (statementsOf(db).length === 0) createTables(db);
  const statements = statementsOf(db);
  if (!statements.some((statement) => statement.startsWith("CREATE TABLE holdfast_schema"))) {
    throw new InvalidInputError(`Cannot open ${path} as a journal: it is the database of another program`, { path });
  }
  const found = db.prepare("SELECT version, checksum FROM holdfast_schema").get() as
    | { version: number; checksum: string }
    | undefined;
  const version = found?.version ?? 0;
  if (version > SCHEMA_VERSION) {
    throw new InvalidInputError(
      `Cannot open ${path} as its schema is version ${version} and this Holdfast knows up to ${SCHEMA_VERSION}: ` +
        `use the newer Holdfast that wrote it, or another --home`,
      { path, version, known: SCHEMA_VERSION },
    );
  }
  const actual = checksum(statements);
  if (version < SCHEMA_VERSION || found?.checksum !== CHECKSUM || actual !== CHECKSUM) {
    throw new InvalidInputError(
      `Cannot open ${path} as its tables are not those of schema version ${SCHEMA_VERSION}: checksum is ${actual}, ` +
        `expected ${CHECKSUM}. Something else has changed the file: restore it, or use another --home`,
      { path, version, checksum: actual, expected: CHECKSUM },
    );
  }
}

function statementsOf(db: DatabaseSync): string[] {
  const rows = db.prepare("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").all() as { sql: string }[];
  return rows.map((row) => row.sql);
}

/** Two processes may open a new file at once: the second finds the tables inside its own transaction. */
function createTables(db: DatabaseSync): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    if (statementsOf(db).length === 0) {
      for (const statement of STATEMENTS) db.exec(statement);
      db.prepare("INSERT INTO holdfast_schema VALUES (?, ?)").run(SCHEMA_VERSION, CHECKSUM);
    }
    db.exec("COMMIT");
  } catch (error) {
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

/** What SQLite says, and what a person does about it. */
const REMEDIES: [RegExp, string, { retryable: boolean }][] = [
  [/full/, "the disk is full. Free some space, then resume", { retryable: false }],
  [/readonly|read-only/, "the file or its directory is read-only. Allow writing, then resume", { retryable: false }],
  [/malformed|not a database/, "the file is damaged. Restore it from a copy, or use another --home", {
    retryable: false,
  }],
  [/locked|busy/, "another process holds its lock. Try again when that process is done", { retryable: true }],
  [/unable to open/, "the file cannot be opened or created. Check the directory and its rights", { retryable: false }],
  [/disk I\/O/, "the disk reports an error. Check the disk, then resume", { retryable: false }],
];

/** An error of SQLite as ours. What was acknowledged before is in the file; the failed transaction left nothing. */
export function asStoreError(error: unknown, what: string, path: string): EngineError {
  if (error instanceof EngineError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const known = REMEDIES.find(([pattern]) => pattern.test(message));
  const why = known?.[1] ?? "SQLite refuses";
  return new InfrastructureError(
    `Cannot ${what} in ${path} as ${why}. Nothing recorded is lost (${message})`,
    { path, sqlite: message },
    { cause: error, retryable: known?.[2].retryable ?? false },
  );
}
