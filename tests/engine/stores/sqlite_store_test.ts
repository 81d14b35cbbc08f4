import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { InfrastructureError } from "../../../engine/errors.ts";
import { ownerAlive } from "../../../engine/stores/ownership.ts";
import { SqliteStore } from "../../../engine/stores/sqlite_store.ts";
import { storeContract } from "../../contracts/store_contract.ts";
import { newRun, row } from "../../contracts/store_rows.ts";
import { openStarted, withFile } from "./sqlite_files.ts";

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

Deno.test("SqliteStore keeps every acknowledged row, and whole transactions, through kill -9", () =>
  withFile(async (path) => {
    const before = new SqliteStore(path);
    await before.create(newRun("a"));
    const script = new URL("./appending_child.ts", import.meta.url).pathname;
    const args = ["run", "-A", "--quiet", script, path, "a"];
    const child = new Deno.Command(Deno.execPath(), { args, stdout: "piped", stderr: "inherit" })
      .spawn();
    let output = "";
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      output += text;
      if (output.split("\n").length > 30) {
        try {
          child.kill("SIGKILL");
        } catch {
          /* It is dead from the first of these kills, and its last words are still coming. */
        }
      }
    }
    strictEqual((await child.status).signal, "SIGKILL");
    const acknowledged = Number(output.split("\n").at(-2));
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
    deepStrictEqual(results.map((result) => result.status), [
      "fulfilled",
      "rejected",
      "rejected",
      "fulfilled",
    ]);
    deepStrictEqual((await store.read("a")).map((found) => [found.seq, found.key]), [[1, "x"], [
      2,
      "y",
    ]]);
    await store.close();
  }));

Deno.test("SqliteStore names a full disk, loses nothing, and writes once there is room", () =>
  withFile(async (path) => {
    await (await openStarted(path)).close();
    // SQLite answers SQLITE_FULL, as it does for ENOSPC.
    const store = new SqliteStore(path, { pages_max: 20 });
    await store.append("a", 1, [row("kept")]);
    const big = row("big", { value: "x".repeat(200_000) });
    const results = await Promise.allSettled([
      store.append("a", 1, [row("with it")]),
      store.append("a", 1, [big]),
    ]);
    deepStrictEqual(results.map((result) => result.status), ["rejected", "rejected"]);
    await rejects(store.append("a", 1, [big]), (error: InfrastructureError) => {
      deepStrictEqual([error.code, error.retryable], ["infrastructure", false]);
      match(
        error.message,
        /^Cannot append 1 rows to run 'a' in .*holdfast.db because the disk is full\. Free/,
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

Deno.test("SqliteStore waits for a lock, then names it; the append can be retried", () =>
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

Deno.test("SqliteStore names a damaged page when it reads it", () =>
  withFile(async (path) => {
    const store = await openStarted(path);
    const rows = Array.from({ length: 100 }, (_, i) => row(`k${i}`, { value: "x".repeat(1_000) }));
    await store.append("a", 1, rows);
    await store.close();
    const bytes = await Deno.readFile(path);
    // The last pages hold rows; the schema is in the first.
    bytes.fill(0xff, bytes.length - 60_000);
    await Deno.writeFile(path, bytes);
    const damaged = new SqliteStore(path);
    await rejects(
      damaged.read("a"),
      /Cannot read the journal of run 'a' in .* because the file is damaged/,
    );
    await damaged.close();
  }));

Deno.test("SqliteStore.close() finishes what was asked for; a closed store says so", () =>
  withFile(async (path) => {
    const store = await openStarted(path);
    const appended = store.append("a", 1, [row("x")]);
    await store.close();
    deepStrictEqual(await appended, { fenced: false, last_seq: 1 });
    await rejects(
      store.append("a", 1, [row("y")]),
      /Cannot use the journal .* because it is closed/,
    );
    await rejects(store.read("a"), /because it is closed/);
    await store.close();
  }));

Deno.test("SqliteStore makes more writes in a tick than fit a transaction, in order", () =>
  withFile(async (path) => {
    const store = await openStarted(path);
    const answers = await Promise.all(
      Array.from({ length: 600 }, (_, i) => store.append("a", 1, [row(`k${i}`)])),
    );
    deepStrictEqual(
      answers.map((answer) => !answer.fenced && answer.last_seq),
      answers.map((_, i) => i + 1),
    );
    await store.close();
  }));
