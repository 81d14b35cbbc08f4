import { deepStrictEqual, ok, strictEqual, throws } from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { z } from "zod";
import {
  isReadable,
  LostRecordError,
  recordedAs,
  recordedRound,
  recordedValue,
  SqliteStore,
} from "../../../engine/mod.ts";
import { recordedOutput } from "../../../engine/journal/recorded_value.ts";

const head = { name: "a", entry: "", graph: "{}", graph_hash: "", config: "{}", packages: "{}" };

Deno.test("a damaged value in a sound SQLite file is named by its row", async () => {
  const dir = await Deno.makeTempDir({ prefix: "recorded_value_" });
  const path = `${dir}/holdfast.db`;
  const store = new SqliteStore(path);
  try {
    await store.create({ ...head, id: "a" }, [{
      kind: "result",
      key: "round/3/train",
      value: '{"output":1}',
    }]);
    using db = new DatabaseSync(path);
    for (const bytes of ["", "00", "fffe80", "7b226f", "6e756c6c", "33", "5b5d"]) {
      db.exec(`UPDATE journal SET value = CAST(x'${bytes}' AS TEXT)`);
      const [row] = await store.read("a");
      throws(() => recordedOutput(row!.key, row!.value), (error: Error) => {
        ok(error instanceof LostRecordError && !error.retryable);
        ok(error.message.includes("the 'result' row of 'round/3/train'"), error.message);
        return true;
      }, bytes);
    }
    const [row] = await store.read("a");
    deepStrictEqual([recordedValue(row!), isReadable(row!)], [[], true]);
    strictEqual(isReadable({ ...row!, value: "{" }), false);
  } finally {
    await store.close();
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("a value of a different shape is damaged too, and named by its row", () => {
  const row = { kind: "round" as const, key: "round/3" };
  const named = { code: "lost_record", message: /^Cannot read the 'round' row of 'round\/3'/ };
  for (const value of ["{", "null", "3", '{"a":1}', '{"round":1,"carried":null,"total":{}}']) {
    throws(() => recordedRound({ ...row, value }), named);
    throws(() => recordedAs({ ...row, value }, z.object({ dir: z.string() }).parse), named);
  }
  const value = { round: 1, carried: {}, total: {} };
  deepStrictEqual(recordedRound({ ...row, value: JSON.stringify(value) }), value);
  strictEqual(recordedAs({ ...row, value: "3" }, z.number().parse), 3);
});
