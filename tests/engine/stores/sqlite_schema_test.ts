import { deepStrictEqual, doesNotMatch, match, strictEqual, throws } from "node:assert/strict";
import { InfrastructureError, InvalidInputError } from "../../../engine/errors.ts";
import { SqliteStore } from "../../../engine/stores/sqlite_store.ts";
import { DatabaseSync } from "node:sqlite";
import { openStarted, withFile } from "./sqlite_files.ts";

/** Runs SQL on the file behind the store's back. */
function tamper(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

Deno.test("SqliteStore refuses other schemas, altered tables and others' files", () =>
  withFile(async (path) => {
    await (await openStarted(path)).close();
    tamper(path, "UPDATE holdfast_schema SET version = 99");
    throws(() => new SqliteStore(path), (error: InvalidInputError) => {
      strictEqual(error.code, "invalid_input");
      match(
        error.message,
        /schema is version 99 and this Holdfast's is 4: use the Holdfast that wrote it/,
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

Deno.test("SqliteStore refuses a file of an older schema, and leaves it as it is", () =>
  withFile(async (path) => {
    await (await openStarted(path)).close();
    tamper(path, "ALTER TABLE runs DROP COLUMN journal; UPDATE holdfast_schema SET version = 3");
    const before = await Deno.readFile(path);
    throws(
      () => new SqliteStore(path),
      /its schema is version 3 and this Holdfast's is 4: use the Holdfast that wrote it, or/,
    );
    deepStrictEqual(await Deno.readFile(path), before);
  }));

Deno.test("SqliteStore opens the files of schema version 4 that there are", () =>
  withFile(async (path) => {
    await (await openStarted(path)).close();
    using db = new DatabaseSync(path);
    // Whoever changes the text of the tables raises the version.
    deepStrictEqual({ ...db.prepare("SELECT * FROM holdfast_schema").get() }, {
      version: 4,
      checksum: "39109fe71fa846c62dd0aad435be7914e9965aa372a8c0bc92846be23808ea62",
    });
  }));
