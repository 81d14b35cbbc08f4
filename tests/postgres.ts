/**
 * PostgreSQL for tests: a schema of the test's own in a database that is there, by the clock that
 * the test holds.
 */
import postgres from "postgres";
import { type ManualClock } from "../engine/clock.ts";
import type { PostgresOptions } from "../engine/stores/postgres_link.ts";
import { PostgresStore } from "../engine/stores/postgres_store.ts";

/** The server that tests use, as a URL of a database that may be written to. */
export const TEST_POSTGRES = Deno.env.get("HOLDFAST_TEST_POSTGRES") ??
  "postgres://root@127.0.0.1:5432/postgres";

/** Why tests of PostgreSQL are left out; null: they run. In CI a missing server is a failure. */
export const POSTGRES_MISSING: string | null = await whyMissing();

async function whyMissing(): Promise<string | null> {
  const sql = postgres(TEST_POSTGRES, { max: 1, fetch_types: false, connect_timeout: 5 });
  try {
    await sql.unsafe("SELECT 1");
    return null;
  } catch (error) {
    const why = `no PostgreSQL to test against (${
      (error as Error).message
    }): set HOLDFAST_TEST_POSTGRES`;
    if (Deno.env.get("CI") === "true") {
      throw new Error(`Cannot run the tests because there is ${why}`, { cause: error });
    }
    return why;
  } finally {
    await sql.end({ timeout: 1 });
  }
}

/** Stores in one new schema, and what a test does behind their back. */
export type TestSchema = {
  url: string;
  open(options?: PostgresOptions): PostgresStore;
  sql(text: string): Promise<Record<string, unknown>[]>;
  /** Closes the stores and drops the schema. */
  dispose(): Promise<void>;
};

export function testSchema(base = TEST_POSTGRES): TestSchema {
  const schema = `test_${crypto.randomUUID().replaceAll("-", "").slice(0, 16)}`;
  const url = `${base}?schema=${schema}`;
  const opened: PostgresStore[] = [];
  const admin = postgres(base, {
    max: 1,
    fetch_types: false,
    onnotice() {},
    connection: { search_path: schema },
  });
  return {
    url,
    open(options = {}) {
      const store = new PostgresStore(url, options);
      opened.push(store);
      return store;
    },
    sql: (text) => admin.unsafe(text),
    async dispose() {
      for (const store of opened) await store.close();
      await admin.unsafe(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
      await admin.end({ timeout: 5 });
    },
  };
}

/**
 * The time of a test's clock as an SQL expression: a sequence of the schema, which `follow()` keeps
 * in step.
 */
export const NOW_SQL = "(SELECT last_value FROM test_clock)";

/**
 * Makes the schema's clock one with the test's: whoever advances the test's clock advances the
 * database's.
 */
export async function follow(clock: ManualClock, { sql, url }: TestSchema): Promise<void> {
  const schema = new URL(url).searchParams.get("schema");
  await sql(`CREATE SCHEMA ${schema}; CREATE SEQUENCE test_clock START ${clock.now()}`);
  const advance = clock.advance.bind(clock);
  clock.advance = async (ms) => {
    await sql(`SELECT setval('test_clock', ${clock.now() + ms})`);
    await advance(ms);
  };
}
