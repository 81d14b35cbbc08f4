import { deepStrictEqual, match, ok, rejects, strictEqual, throws } from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { InfrastructureError, InvalidInputError } from "../../engine/errors.ts";
import { ownerAlive } from "../../engine/ownership.ts";
import { SqliteStore } from "../../engine/sqlite_store.ts";
import { storeContract } from "../contracts/store_contract.ts";
import { newOwner, newRun, row } from "../contracts/store_rows.ts";

storeContract("SQLite", (clock) => {
  const dir = Deno.makeTempDirSync();
  const opened: SqliteStore[] = [];
  const open = () => {
    const store = new SqliteStore(`${dir}/holdfast.db`, { clock });
    opened.push(store);
    return store;
  };
  const dispose = async () => {
    for (const store of opened) await store.close();
    await Deno.remove(dir, { recursive: true });
  };
  return { store: open(), second: open, dispose };
}, { shared: true });

async function withFile(body: (path: string) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir();
  try {
    await body(`${dir}/home/holdfast.db`);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/** A store with run `a` claimed at epoch 1. */
async function openStarted(path: string): Promise<SqliteStore> {
  const store = new SqliteStore(path);
  await store.create(newRun("a"));
  await store.claim("a", newOwner("one"), { lease_ms: 1_000 });
  return store;
}

/** Runs SQL on the file behind the store's back. */
function tamper(path: string, sql: string): void {
  const db = new DatabaseSync(path);
  db.exec(sql);
  db.close();
}

Deno.test("SqliteStore keeps every acknowledged row, and whole transactions only, through kill -9", () =>
  withFile(async (path) => {
    const before = new SqliteStore(path);
    await before.create(newRun("a"));
    const script = new URL("./appending_child.ts", import.meta.url).pathname;
    const args = ["run", "-A", "--quiet", script, path, "a"];
    const child = new Deno.Command(Deno.execPath(), { args, stdout: "piped", stderr: "inherit" }).spawn();
    let said = "";
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      said += text;
      if (said.split("\n").length > 30) {
        try {
          child.kill("SIGKILL");
        } catch { /* It is dead from the first of these kills, and its last words are still coming. */ }
      }
    }
    strictEqual((await child.status).signal, "SIGKILL");
    const acknowledged = Number(said.split("\n").at(-2));
    ok(acknowledged >= 120, `only ${acknowledged} rows were acknowledged before the kill`);

    const rows = await before.read("a");
    const head = await before.head("a");
    ok(rows.length >= acknowledged, `${rows.length} rows of ${acknowledged} acknowledged`);
    deepStrictEqual(rows.map((found) => found.seq), rows.map((_, i) => i + 1));
    strictEqual(head?.last_seq, rows.length);
    strictEqual(rows.length % 4, 0); // Four rows share each transaction.
    strictEqual(ownerAlive(head!.owner!), "dead");
    await before.close();
  }));

Deno.test("SqliteStore: a write that fails in a shared transaction loses only itself", () =>
  withFile(async (path) => {
    const store = await openStarted(path);
    const broken = { ...row("broken"), value: undefined as unknown as string };
    const results = await Promise.allSettled([
      store.append("a", 1, [row("x")]),
      store.append("a", 1, [row("half"), broken]),
      store.append("none", 1, [row("z")]),
      store.append("a", 1, [row("y")]),
    ]);
    deepStrictEqual(results.map((result) => result.status), ["fulfilled", "rejected", "rejected", "fulfilled"]);
    deepStrictEqual((await store.read("a")).map((found) => [found.seq, found.key]), [[1, "x"], [2, "y"]]);
    await store.close();
  }));

Deno.test("SqliteStore: a full disk is named, loses nothing recorded, and writing goes on once there is room", () =>
  withFile(async (path) => {
    await (await openStarted(path)).close();
    const store = new SqliteStore(path, { pages_max: 20 }); // SQLite answers SQLITE_FULL, as it does for ENOSPC.
    await store.append("a", 1, [row("kept")]);
    const big = row("big", { value: "x".repeat(200_000) });
    const results = await Promise.allSettled([store.append("a", 1, [row("with it")]), store.append("a", 1, [big])]);
    deepStrictEqual(results.map((result) => result.status), ["rejected", "rejected"]);
    await rejects(store.append("a", 1, [big]), (error: InfrastructureError) => {
      deepStrictEqual([error.code, error.retryable], ["infrastructure", false]);
      match(
        error.message,
        /^Cannot append 1 rows to run 'a' in .*holdfast.db because the disk is full\. Free some space/,
      );
      return true;
    });
    deepStrictEqual(await store.append("a", 1, [row("small")]), { fenced: false, last_seq: 2 });
    await store.close();
    const roomy = new SqliteStore(path);
    deepStrictEqual(await roomy.append("a", 1, [big]), { fenced: false, last_seq: 3 });
    deepStrictEqual((await roomy.read("a")).map((found) => found.key), ["kept", "small", "big"]);
    await roomy.close();
  }));

Deno.test("SqliteStore: another process's lock is waited for, then named, and the append can be tried again", () =>
  withFile(async (path) => {
    await (await openStarted(path)).close();
    const store = new SqliteStore(path, { busy_timeout_ms: 20 });
    const other = new DatabaseSync(path);
    other.exec("BEGIN IMMEDIATE");
    deepStrictEqual(await store.read("a"), []); // Readers are not blocked by a writer.
    await rejects(store.append("a", 1, [row("x")]), (error: InfrastructureError) => {
      deepStrictEqual([error.code, error.retryable], ["infrastructure", true]);
      match(error.message, /another process holds its lock/);
      return true;
    });
    other.exec("ROLLBACK");
    other.close();
    deepStrictEqual(await store.append("a", 1, [row("x")]), { fenced: false, last_seq: 1 });
    await store.close();
  }));

Deno.test("SqliteStore refuses a newer schema, altered tables, another program's file and a file that is no database", () =>
  withFile(async (path) => {
    await (await openStarted(path)).close();
    tamper(path, "UPDATE holdfast_schema SET version = 99");
    throws(() => new SqliteStore(path), (error: InvalidInputError) => {
      strictEqual(error.code, "invalid_input");
      match(error.message, /schema is version 99 and this Holdfast knows up to 4: use the newer Holdfast/);
      return true;
    });
    tamper(path, "UPDATE holdfast_schema SET version = 4; DROP INDEX journal_kind");
    throws(() => new SqliteStore(path), /tables are not those of schema version 4: checksum is [0-9a-f]{64}, expected/);

    tamper(`${path}.other`, "CREATE TABLE songs (title TEXT)");
    throws(() => new SqliteStore(`${path}.other`), /it is the database of another program/);
    await Deno.writeTextFile(`${path}.text`, "This is a letter, not a database. ".repeat(50));
    throws(() => new SqliteStore(`${path}.text`), (error: InfrastructureError) => {
      deepStrictEqual([error.code, error.retryable], ["infrastructure", false]);
      match(error.message, /^Cannot open the journal in .*text because the file is damaged\. Restore it/);
      return true;
    });
  }));

Deno.test("SqliteStore brings a file of schema version 1 up to date and keeps everything in it", () =>
  withFile(async (path) => {
    await Deno.mkdir(path.slice(0, path.lastIndexOf("/")));
    tamper(path, await Deno.readTextFile(new URL("./sqlite_version_1.sql", import.meta.url)));
    const [store, beside] = [new SqliteStore(path), new SqliteStore(path)];
    const old = { entry: "flows/mod.ts", graph: "g", graph_hash: "h", packages: "{}" };
    const added = { queue: null, priority: 0, needs: {}, parent: null, home: null, journal: 1 };
    deepStrictEqual(await store.heads(), [
      {
        ...{ id: "b", name: "run b", status: "failed", epoch: 1, last_seq: 0, ...old, config: "{}", owner: null },
        ...{ lease_until_ms: 0, requests: [], error: '{"code":"x"}', created_ms: 11, updated_ms: 21, ...added },
      },
      {
        ...{ id: "a", name: "run a", status: "running", epoch: 3, last_seq: 2, ...old, config: '{"seed":1}' },
        ...{ owner: newOwner("one"), lease_until_ms: 99, requests: ["drain"], error: null, created_ms: 10 },
        ...{ updated_ms: 20, ...added },
      },
    ]);
    deepStrictEqual([await store.identity(), (await store.identity()).since_ms], [await beside.identity(), 10]);
    deepStrictEqual(await beside.read("a"), [
      { seq: 1, epoch: 2, at_ms: 12, kind: "intent", key: "round/1/x", input_hash: "f00", value: '{"n":1}' },
      { seq: 2, epoch: 3, at_ms: 13, kind: "result", key: "round/1/x", value: "2" },
    ]);
    deepStrictEqual(await beside.append("a", 3, [row("y")]), { fenced: false, last_seq: 3 });
    for (const one of [store, beside]) await one.close();
  }));

Deno.test("SqliteStore refuses a file of schema version 1 that something else has changed, and leaves it as it is", () =>
  withFile(async (path) => {
    await Deno.mkdir(path.slice(0, path.lastIndexOf("/")));
    tamper(path, await Deno.readTextFile(new URL("./sqlite_version_1.sql", import.meta.url)));
    tamper(path, "DROP INDEX journal_kind; PRAGMA journal_mode = WAL");
    const before = await Deno.readFile(path);
    throws(() => new SqliteStore(path), /tables are not those of schema version 1: checksum is/);
    deepStrictEqual(await Deno.readFile(path), before);
  }));

Deno.test("SqliteStore names a damaged page when it reads it", () =>
  withFile(async (path) => {
    const store = await openStarted(path);
    const rows = Array.from({ length: 100 }, (_, i) => row(`k${i}`, { value: "x".repeat(1_000) }));
    await store.append("a", 1, rows);
    await store.close();
    const bytes = await Deno.readFile(path);
    bytes.fill(0xff, bytes.length - 60_000); // The last pages hold rows; the schema is in the first.
    await Deno.writeFile(path, bytes);
    const damaged = new SqliteStore(path);
    await rejects(damaged.read("a"), /Cannot read the journal of run 'a' in .* because the file is damaged/);
    await damaged.close();
  }));

Deno.test("SqliteStore.close() finishes what was asked for; a closed store says so", () =>
  withFile(async (path) => {
    const store = await openStarted(path);
    const asked = store.append("a", 1, [row("x")]);
    await store.close();
    deepStrictEqual(await asked, { fenced: false, last_seq: 1 });
    await rejects(store.append("a", 1, [row("y")]), /Cannot use the journal .* because it is closed/);
    await rejects(store.read("a"), /because it is closed/);
    await store.close();
  }));

Deno.test("SqliteStore: more writes in one tick than a transaction takes are all made, in order", () =>
  withFile(async (path) => {
    const store = await openStarted(path);
    const answers = await Promise.all(Array.from({ length: 600 }, (_, i) => store.append("a", 1, [row(`k${i}`)])));
    deepStrictEqual(answers.map((answer) => !answer.fenced && answer.last_seq), answers.map((_, i) => i + 1));
    await store.close();
  }));
