import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { SourceConfig } from "../../../data/mod.ts";
import { readRow, type RowNeeds } from "../../../data/rows/source_row.ts";

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

Deno.test("readRow() takes a whole text only where it is learnt, and adds nothing to it", () => {
  const read = (needs: RowNeeds | undefined, settings: Record<string, unknown> = {}) =>
    readRow({ text: "a b" }, {
      source: SourceConfig.parse({ path: "a.jsonl", ...settings }),
      place: { file: "a.jsonl", line: 7 },
      needs,
    });
  for (const needs of ["completion", "every_turn", undefined] as const) {
    const { prompt, completion } = read(needs);
    deepStrictEqual([prompt, completion], ["", "a b"]);
  }
  for (const needs of ["prompt", "answer"] as const) {
    throws(() => read(needs), /a\.jsonl:7 prompt: the prompt is empty; only supervised runs learn/);
  }
  for (const settings of [{ system: "s" }, { instruction: "i" }, { prompt_as: "chat" }]) {
    const [name] = Object.keys(settings);
    throws(() => read("completion", settings), {
      message: `a.jsonl:7 prompt: the row has no prompt that \`${name}\` could be added to; ` +
        "leave it out, or name the prompt with `fields: { prompt: NAME }`",
    });
  }
  strictEqual(read("prompt", { fields: { prompt: "text" } }).prompt, "a b");
  for (const prompt of ["", []]) {
    const ofRow = (completion: unknown) =>
      readRow({ prompt, completion }, {
        source: SourceConfig.parse({ path: "a.jsonl" }),
        place: { file: "a.jsonl", line: 7 },
        needs: "completion",
      });
    for (const text of ["a b", [{ role: "assistant", content: "a b" }]]) {
      const { prompt: none, completion } = ofRow(text);
      deepStrictEqual([none, completion], ["", "a b"]);
    }
    throws(() => ofRow(""), /a\.jsonl:7 completion: it is empty, and so is the prompt/);
  }
});

Deno.test("readRow() says what a row has where an answer as text is needed", () => {
  const read = (columns: Record<string, unknown>) =>
    readRow(columns, { source, place: { file: "a.parquet", row: 7 }, needs: "answer" });
  strictEqual(read({ prompt: "a", answer: 7 }).answer, "7");
  for (const [columns, what] of [[{ answer: ["b", "c"] }, "a list"], [{}, "nothing"]] as const) {
    throws(() => read({ prompt: "a", ...columns }), {
      message: `a.parquet row 7 answer: expected an answer as text, got ${what}; add it`,
    });
  }
});
