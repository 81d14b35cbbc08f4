/**
 * The habits of the house, counted. `tidy/record.json` holds each count; a count may only fall, and
 * where it fell the record is lowered: `deno test -A tests/tidy_test.ts -- --record`.
 */
import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { MEASURES, verdict } from "./tidy/measures.ts";
import { entriesOf, readTree } from "./tidy/repository.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const RECORD = new URL("./tidy/record.json", import.meta.url);

const tree = await readTree(
  ROOT,
  entriesOf(JSON.parse(await Deno.readTextFile(`${ROOT}deno.json`))),
);
const record = JSON.parse(await Deno.readTextFile(RECORD)) as Record<string, number>;

Deno.test("the record has a number for every measure", () => {
  deepStrictEqual(Object.keys(record).toSorted(), Object.keys(MEASURES).toSorted());
});

for (const [name, findings] of Object.entries(MEASURES)) {
  Deno.test(`${name} is what the record says`, async () => {
    const found = findings(tree);
    if (Deno.args.includes("--record") && found.length < record[name]!) {
      record[name] = found.length;
      await Deno.writeTextFile(RECORD, JSON.stringify(record, null, 2) + "\n");
    }
    strictEqual(verdict(name, found, record[name]!), null);
  });
}
