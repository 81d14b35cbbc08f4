import { deepStrictEqual, strictEqual } from "node:assert/strict";
import type { ArtifactRef, Row } from "../../../../data/mod.ts";
import { ArtifactStore } from "../../../../engine/mod.ts";
import { Preparing } from "./preparing.ts";

/** The fake trainer's tokens are characters. */
Deno.test("lengths in tokens are of rows that are not left out", async () => {
  const run = await Preparing.of({
    "a.jsonl": [
      { prompt: "abc", completion: "de" },
      { prompt: "abc", completion: "de" },
      { prompt: "abcd", completion: "efg" },
      { prompt: "a", completion: "b" },
      { prompt: "abcdefgh", completion: "" },
    ],
  }, {
    inputs: [{ path: "DIR/a.jsonl" }],
    needs: "completion",
    tokenizer: { path: "DIR/tokenizer" },
    lengths: { prompt_tokens_max: 7, sequence_tokens_max: 6, sequence_tokens_min: 3 },
  });
  await run.done();
  const { rows, dropped_rows } = await run.card();
  deepStrictEqual(rows, {
    read: 5,
    written: 1,
    dropped: { duplicate: 1, too_long: 2, too_short: 1 },
  });
  deepStrictEqual(dropped_rows.map(({ row, because }) => `${row} ${because}`), [
    "2 an earlier row has the same content",
    "3 7 tokens of the sequence, the limit is 6",
    "4 2 tokens of the sequence, the limit is 3",
    "5 8 tokens of the prompt, the limit is 7",
  ]);
});

Deno.test("a row that the template refuses is named with file and line", async () => {
  const rows = ["one", "one", "two", "three"].map((prompt) => ({ id: prompt, prompt }));
  const files = { "a.jsonl": rows, "b.csv": "id,prompt\nfour,4\nfive,5\n" };
  const refused = async (refuses: string) => {
    const inputs = [{ path: "DIR/a.jsonl" }, { path: "DIR/b.csv" }];
    const run = await Preparing.of(files, { inputs, tokenizer: { path: "DIR/tokenizer" } });
    const message = await run.failure({ refuses });
    return message.slice(message.indexOf("Cannot use"));
  };
  const why = "message 2 tool_calls: nothing is written of it";
  strictEqual(await refused("five"), `Cannot use row 'five' (b.csv row 2): ${why}`);
  strictEqual(await refused("three"), `Cannot use row 'three' (a.jsonl:4): ${why}`);
});

Deno.test("the tools of a row are measured with it", async () => {
  const tools = [{ type: "function", function: { name: "f" } }];
  const run = await Preparing.of({
    "a.jsonl": [{ prompt: [{ role: "user", content: "a" }], completion: "b", tools }],
  }, {
    inputs: [{ path: "DIR/a.jsonl" }],
    needs: "completion",
    tokenizer: { path: "DIR/tokenizer" },
    lengths: { prompt_tokens_max: 1000 },
  });
  await run.done();
  const { args } = run.trainer!.calls.find(({ op }) => op === "measure_rows")!;
  const { rows } = args as { rows: ArtifactRef };
  const [row] = await new ArtifactStore(`${run.dir}/artifacts`).getJson(rows) as Row[];
  deepStrictEqual(row!.tools, JSON.stringify(tools));
});
