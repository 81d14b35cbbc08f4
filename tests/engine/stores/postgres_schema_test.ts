import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { EngineError } from "../../../engine/errors.ts";
import { PostgresStore } from "../../../engine/stores/postgres_store.ts";
import { newOwner, newRun, row } from "../../contracts/store_rows.ts";
import { POSTGRES_MISSING, TEST_POSTGRES, type TestSchema, testSchema } from "../../postgres.ts";

const ignore = POSTGRES_MISSING !== null;

async function withSchema(body: (schema: TestSchema) => Promise<void>): Promise<void> {
  const schema = testSchema();
  try {
    await body(schema);
  } finally {
    await schema.dispose();
  }
}

/** The message of the error that a store of this URL meets first. */
async function refusal(url: string): Promise<string> {
  const store = new PostgresStore(url, { patience_ms: 0 });
  try {
    await store.heads();
  } catch (error) {
    ok(error instanceof EngineError);
    ok(!JSON.stringify(error).includes("s3cret"));
    return error.message;
  } finally {
    await store.close();
  }
  throw new Error(`Cannot be: ${url} was opened`);
}

Deno.test({
  name: "PostgreSQL: concurrent openings of a new database create its tables once",
  ignore,
  fn: () =>
    withSchema(async (schema) => {
      const stores = Array.from({ length: 8 }, () => schema.open());
      deepStrictEqual(
        await Promise.all(stores.map((store) => store.heads())),
        stores.map(() => []),
      );
      await Promise.all(stores.map((store, i) => store.create(newRun(`r${i}`))));
      strictEqual((await stores[0]!.heads()).length, 8);
      deepStrictEqual(
        (await schema.sql("SELECT version FROM holdfast_schema")).map((one) => one.version),
        [3],
      );
    }),
});

Deno.test({
  name: "PostgreSQL refuses another schema, altered tables and foreign tables",
  ignore,
  fn: () =>
    withSchema(async (schema) => {
      await schema.open().create(newRun("a"));
      for (const version of [2, 99]) {
        await schema.sql(`UPDATE holdfast_schema SET version = ${version}`);
        match(
          await refusal(schema.url),
          new RegExp(
            `is version ${version} and this Holdfast's is 3: use the Holdfast that created`,
          ),
        );
      }
      await schema.sql(
        "UPDATE holdfast_schema SET version = 3; ALTER TABLE runs ADD COLUMN mine integer",
      );
      match(
        await refusal(schema.url),
        /its tables are not those of schema version 3: checksum is \w+, expected \w+/,
      );
      await schema.sql("ALTER TABLE runs DROP COLUMN mine");
      deepStrictEqual((await schema.open().heads()).map(({ id }) => id), ["a"]);
      await schema.sql("DROP INDEX journal_kind");
      match(await refusal(schema.url), /Something else has changed them/);
      await schema.sql("DROP TABLE holdfast_schema");
      match(
        await refusal(schema.url),
        /another program has tables there: name a different schema with \?schema=NAME/,
      );
    }),
});

Deno.test({
  name:
    "PostgreSQL: what keeps a database from being opened is said with its mend, and no password",
  ignore,
  async fn() {
    const url = (change: (url: URL) => void) => {
      const changed = new URL(TEST_POSTGRES);
      changed.password = "s3cret";
      change(changed);
      return changed.href;
    };
    match(
      await refusal(url((one) => one.pathname = "/no_such_db")),
      /there is no such database. Create it with createdb/,
    );
    match(
      await refusal(url((one) => one.username = "no_such_user")),
      /the server refuses the user|refuses the password/,
    );
    match(
      await refusal(url((one) => one.port = "1")),
      /PostgreSQL has been away for 0 s .*ECONNREFUSED/,
    );
    match(
      await refusal(url((one) => one.hostname = "no-such-host.invalid")),
      /there is no host of that name|away for/,
    );
  },
});

Deno.test({
  name: "PostgreSQL: text that it cannot keep is refused, and costs nobody else's rows",
  ignore,
  fn: () =>
    withSchema(async (schema) => {
      const store = schema.open();
      for (const id of ["a", "b"]) {
        await store.create(newRun(id));
        await store.claim(id, newOwner("one"), { lease_ms: 60_000 });
      }
      const results = await Promise.allSettled([
        store.append("a", 1, [row("x")]),
        store.append("b", 1, [row("nul", { value: '"\0"' })]),
        store.append("a", 1, [row("y")]),
      ]);
      deepStrictEqual(results.map(({ status }) => status), ["fulfilled", "rejected", "fulfilled"]);
      match(
        (results[1] as PromiseRejectedResult).reason.message,
        /a character that PostgreSQL cannot store \(NUL\)/,
      );
      deepStrictEqual((await store.read("a")).map(({ key }) => key), ["x", "y"]);
      deepStrictEqual(await store.append("b", 1, [row("z")]), { fenced: false, last_seq: 1 });
    }),
});

Deno.test({
  name: "PostgreSQL: the store's connections commit synchronously, whatever the role says",
  ignore,
  async fn() {
    const role = `holdfast_${crypto.randomUUID().slice(0, 8)}`;
    await withSchema(async (schema) => {
      await schema.sql(
        `CREATE ROLE ${role} LOGIN SUPERUSER; ALTER ROLE ${role} SET synchronous_commit = off`,
      );
      try {
        const url = new URL(schema.url);
        url.username = role;
        // The clock of this store tells what its own connection was set to.
        const now_sql =
          "(CASE current_setting('synchronous_commit') WHEN 'on' THEN 1 ELSE 0 END)::bigint";
        const store = new PostgresStore(url.href, { now_sql });
        strictEqual((await store.create(newRun("a"))).created_ms, 1);
        await store.close();
      } finally {
        await schema.sql(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`);
      }
    });
  },
});

Deno.test("a store of PostgreSQL that is closed says so", async () => {
  const store = new PostgresStore("postgres://127.0.0.1:1/none");
  await store.close();
  await rejects(
    store.heads(),
    /Cannot use the journal postgres:\/\/127.0.0.1:1\/none because it is closed/,
  );
  await rejects(store.append("a", 1, []), /because it is closed/);
});
