import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { endAll, json, rl, ROOT } from "./fixtures.ts";
import { BAD, GOOD } from "./data_home.ts";

Deno.test.afterAll(endAll);

Deno.test("data preview shows rows as a run reads them, and tells a broken one by file, line and field", async () => {
  const { rows, preview } = await json<
    { rows: number; preview: { row_id: string; prompt: string }[] }
  >(
    ["data", "preview", GOOD, "-n", "1"],
  );
  deepStrictEqual([rows, preview.length, preview[0]!.prompt], [2, 1, "1+1"]);
  const bad = await rl(["data", "preview", BAD]);
  deepStrictEqual([bad.code, bad.out], [2, ""]);
  match(bad.err, /bad\.jsonl:2 prompt: expected text .* got number 3/);
});

Deno.test("data preview shows preferences as pairs, with the prompt that their sides share", async () => {
  const shown = await rl(["data", "preview", `${ROOT}examples/preferences.jsonl`]);
  strictEqual(shown.code, 0);
  const fields = shown.out.split("\n").filter((line) => /chosen|rejected|margin/.test(line)).map((
    line,
  ) => line.trim());
  const read = fields.filter((line) => !line.startsWith("columns"));
  deepStrictEqual(read.map((line) => line.replace(/ +/, " ")), [
    "chosen 12345",
    "rejected 12354",
    "chosen 01789",
    "rejected 0178",
    "margin 0.5",
    "chosen 1236",
    "rejected 6321",
  ]);
  match(shown.out, /prompt +\[\{"role":"user","content":"sort 6321"\}\]/);
});
