import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { Preparing } from "./preparing.ts";

const sets = (names: string[]) => names.map((path) => ({ path: `DIR/${path}` }));
const text = (word: string) => Array.from({ length: 5 }, (_, i) => `${word}${i}`).join(" ");

Deno.test("rows are compared with questions of sets, not with system messages", async () => {
  const system = { role: "system", content: text("system") };
  const run = await Preparing.of({
    "held.jsonl": [{ prompt: [system, { role: "user", content: text("held") }] }],
    "more.csv": `question,answer\n${text("more")},1\n`,
    "in.jsonl": [
      { prompt: `first: ${text("held")}` },
      { prompt: text("more") },
      { prompt: text("system") },
      { prompt: text("own"), completion: `${text("held")} is the question` },
    ],
  }, {
    inputs: [{ path: "DIR/in.jsonl" }],
    decontaminate: { sets: sets(["held.jsonl", "more.csv"]), ngram_words: 5 },
  });
  await run.done();
  const { rows, evaluation_sets, dropped_rows } = await run.card();
  deepStrictEqual(rows, { read: 4, written: 1, dropped: { contaminated: 3 } });
  deepStrictEqual(evaluation_sets.map((set) => [set.name, set.problems, set.rows_dropped]), [
    ["held", 1, 2],
    ["more", 1, 1],
  ]);
  strictEqual(dropped_rows[0]!.because, `held contains "${text("held")}"`);
});

Deno.test("an evaluation set that is missing ends the run before anything is read", async () => {
  const run = await Preparing.of({ "in.jsonl": [{ prompt: "p" }] }, {
    inputs: [{ path: "DIR/in.jsonl" }],
    decontaminate: { sets: sets(["none.jsonl"]) },
  });
  match(await run.failure(), /none\.jsonl: Cannot read it: there is no such file/);
});
