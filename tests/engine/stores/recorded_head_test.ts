import { deepStrictEqual, rejects, strictEqual, throws } from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { recordedError, recordedField, SqliteStore } from "../../../engine/mod.ts";

const RUN = {
  id: "a",
  name: "a",
  entry: "m.ts#g",
  graph: '{"name":"g"}',
  graph_hash: "h",
  config: '{"seed":1}',
  packages: "{}",
};

Deno.test("recordedField() is the JSON of a head, and names the run and what is damaged", () => {
  deepStrictEqual(recordedField(RUN, "config"), { seed: 1 });
  strictEqual(recordedError({ id: "a", error: null }), null);
  deepStrictEqual(recordedError({ id: "a", error: '{"code":"x"}' }), { code: "x" });
  throws(() => recordedField({ ...RUN, config: "{broken" }, "config"), {
    code: "lost_record",
    message: "Cannot read run 'a' because its 'config' in the journal is damaged: \"{broken\". " +
      "Fix: restore the journal from a copy",
  });
});

for (const column of ["requests", "needs", "owner", "parent"]) {
  Deno.test(`SqliteStore names the run whose '${column}' is damaged, and promises nothing`, async () => {
    const dir = await Deno.makeTempDir({ prefix: "head_" });
    const path = `${dir}/holdfast.db`;
    const store = new SqliteStore(path);
    try {
      await store.create(RUN);
      const database = new DatabaseSync(path);
      database.exec(`UPDATE runs SET ${column} = '{broken'`);
      database.close();
      for (const read of [async () => [await store.head("a")], () => store.heads()]) {
        await rejects(read(), {
          code: "lost_record",
          message: new RegExp(
            `^Cannot read run 'a' because its '${column}' in the journal is damaged: "\\{broken". Fix: `,
          ),
        });
      }
    } finally {
      await store.close();
      await Deno.remove(dir, { recursive: true });
    }
  });
}
