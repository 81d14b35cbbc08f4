import { deepStrictEqual, doesNotMatch, match, strictEqual, throws } from "node:assert/strict";
import { InfrastructureError, InvalidInputError } from "../../../engine/errors.ts";
import { SqliteStore } from "../../../engine/stores/sqlite_store.ts";
import { newOwner, row } from "../../contracts/store_rows.ts";
import { DatabaseSync } from "node:sqlite";
import { openStarted, withFile } from "./sqlite_files.ts";

/** Runs SQL on the file behind the store's back. */
function tamper(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

Deno.test("SqliteStore refuses newer schemas, altered tables and others' files", () =>
  withFile(async (path) => {
    await (await openStarted(path)).close();
    tamper(path, "UPDATE holdfast_schema SET version = 99");
    throws(() => new SqliteStore(path), (error: InvalidInputError) => {
      strictEqual(error.code, "invalid_input");
      match(
        error.message,
        /schema is version 99 and this Holdfast knows up to 4: use the newer Holdfast/,
      );
      return true;
    });
    tamper(path, "UPDATE holdfast_schema SET version = 4; DROP INDEX journal_kind");
    throws(
      () => new SqliteStore(path),
      /tables are not those of schema version 4: checksum is [0-9a-f]{64}, expected/,
    );

    tamper(`${path}.other`, "CREATE TABLE songs (title TEXT)");
    throws(() => new SqliteStore(`${path}.other`), /it is the database of a different program/);
    const damaged = ["This is a letter, not a database. ".repeat(50), "\0".repeat(8192)];
    for (const text of damaged) {
      await Deno.writeTextFile(`${path}.text`, text);
      throws(() => new SqliteStore(`${path}.text`), (error: InfrastructureError) => {
        deepStrictEqual([error.code, error.retryable], ["infrastructure", false]);
        match(
          error.message,
          /^Cannot open the journal in .*text because the file is damaged\. Restore it/,
        );
        doesNotMatch(error.message, /recorded is lost/);
        return true;
      });
    }
  }));

Deno.test("SqliteStore upgrades a file of schema version 1 and keeps its rows", () =>
  withFile(async (path) => {
    await Deno.mkdir(path.slice(0, path.lastIndexOf("/")));
    tamper(path, await Deno.readTextFile(new URL("./sqlite_version_1.sql", import.meta.url)));
    const [store, beside] = [new SqliteStore(path), new SqliteStore(path)];
    const old = { entry: "flows/mod.ts", graph: "g", graph_hash: "h", packages: "{}" };
    const added = { queue: null, priority: 0, needs: {}, parent: null, home: null, journal: 1 };
    deepStrictEqual(await store.heads(), [
      {
        id: "b",
        name: "run b",
        status: "failed",
        epoch: 1,
        last_seq: 0,
        ...old,
        config: "{}",
        owner: null,
        lease_until_ms: 0,
        requests: [],
        error: '{"code":"x"}',
        created_ms: 11,
        updated_ms: 21,
        ...added,
      },
      {
        id: "a",
        name: "run a",
        status: "running",
        epoch: 3,
        last_seq: 2,
        ...old,
        config: '{"seed":1}',
        owner: newOwner("one"),
        lease_until_ms: 99,
        requests: ["drain"],
        error: null,
        created_ms: 10,
        updated_ms: 20,
        ...added,
      },
    ]);
    deepStrictEqual([await store.identity(), (await store.identity()).since_ms], [
      await beside.identity(),
      10,
    ]);
    deepStrictEqual(await beside.read("a"), [
      {
        seq: 1,
        epoch: 2,
        at_ms: 12,
        kind: "intent",
        key: "round/1/x",
        input_hash: "f00",
        value: '{"n":1}',
      },
      { seq: 2, epoch: 3, at_ms: 13, kind: "result", key: "round/1/x", value: "2" },
    ]);
    deepStrictEqual(await beside.append("a", 3, [row("y")]), { fenced: false, last_seq: 3 });
    for (const one of [store, beside]) await one.close();
  }));

Deno.test("SqliteStore refuses an altered file of version 1, and leaves it as it is", () =>
  withFile(async (path) => {
    await Deno.mkdir(path.slice(0, path.lastIndexOf("/")));
    tamper(path, await Deno.readTextFile(new URL("./sqlite_version_1.sql", import.meta.url)));
    tamper(path, "DROP INDEX journal_kind; PRAGMA journal_mode = WAL");
    const before = await Deno.readFile(path);
    throws(() => new SqliteStore(path), /tables are not those of schema version 1: checksum is/);
    deepStrictEqual(await Deno.readFile(path), before);
  }));
