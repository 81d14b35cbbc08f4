import { strictEqual, throws } from "node:assert/strict";
import { SourceConfig } from "../../data/mod.ts";
import { readRow } from "../../data/source_row.ts";

const source = SourceConfig.parse({ path: "a.parquet", fields: { completion: "text" } });

Deno.test("readRow() names file, row and field of what a row lacks", () => {
  const place = { file: "a.parquet", row: 7 };
  const read = (columns: Record<string, unknown>) =>
    readRow(columns, { source, place, needs: "completion" });
  strictEqual(read({ prompt: "a", text: "b" }).completion, "b");
  throws(() => read({ prompt: "a" }), {
    name: "DataError",
    message:
      "a.parquet row 7 text: expected text, got nothing; add it, or `messages` that end with " +
      "the assistant's",
  });
  throws(() => read({ prompt: 7 }), /^DataError: a\.parquet row 7 prompt: expected text/);
});
