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
  const error = { code: "x", message: "y" };
  deepStrictEqual(recordedError({ id: "a", error: JSON.stringify(error) }), error);
  throws(() => recordedField({ ...RUN, config: "{broken" }, "config"), {
    code: "lost_record",
    message: "Cannot read run 'a' because its 'config' in the journal is damaged: \"{broken\". " +
      "Fix: restore the journal from a copy",
  });
});

Deno.test("recordedField() refuses JSON that is not what the field has", () => {
  const wrong = ["null", "7", '""', "[]", "{}"];
  for (const graph of wrong) {
    throws(() => recordedField({ ...RUN, graph }, "graph"), { code: "lost_record" }, graph);
    throws(() => recordedError({ id: "a", error: graph }), { code: "lost_record" }, graph);
  }
  // A script's graph takes what it likes.
  deepStrictEqual(wrong.map((config) => recordedField({ ...RUN, config }, "config")), [
    null,
    7,
    "",
    [],
    {},
  ]);
});

for (const column of ["requests", "needs", "owner", "parent"]) {
  Deno.test(`SqliteStore names the run whose '${column}' is damaged, and promises nothing`, async () => {
    const dir = await Deno.makeTempDir({ prefix: "head_" });
    const path = `${dir}/holdfast.db`;
    const store = new SqliteStore(path);
    try {
      await store.create(RUN);
      await store.create({ ...RUN, id: "b" });
      const database = new DatabaseSync(path);
      for (const value of ["{broken", "7", '""']) {
        database.prepare(`UPDATE runs SET ${column} = ? WHERE id = 'a'`).run(value);
        const message = `Cannot read run 'a' because its '${column}' in the journal is damaged: ${
          JSON.stringify(value)
        }. Fix: restore the journal from a copy`;
        for (const read of [async () => [await store.head("a")], () => store.heads()]) {
          await rejects(read(), { code: "lost_record", message });
        }
        const told: string[] = [];
        const onDamaged = (error: Error) => void told.push(error.message);
        const whole = (await store.heads({ onDamaged })).map(({ id }) => id);
        deepStrictEqual([whole, told], [["b"], [message]]);
      }
      database.close();
    } finally {
      await store.close();
      await Deno.remove(dir, { recursive: true });
    }
  });
}
