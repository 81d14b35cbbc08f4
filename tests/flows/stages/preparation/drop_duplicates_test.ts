import { deepStrictEqual, match } from "node:assert/strict";
import { Preparing } from "./preparing.ts";

const FILES = {
  "in/a.jsonl": [{ prompt: "a", answer: "1" }, { prompt: "a", answer: "2" }],
  "in/b.jsonl": [{ prompt: " a\n", answer: "1" }, { prompt: "b", answer: "1" }],
};
const rowsOf = async (deduplicate: string) => {
  const run = await Preparing.of(FILES, { inputs: [{ path: "DIR/in" }], deduplicate });
  await run.done();
  return (await run.card()).inputs.map(({ written }) => written);
};

Deno.test("of equal rows the first stays, in the order of files and rows", async () => {
  deepStrictEqual(await rowsOf("prompt"), [1, 1]);
  deepStrictEqual(await rowsOf("row"), [2, 1]);
  deepStrictEqual(await rowsOf("none"), [2, 2]);
});

Deno.test("an id of two rows that differ ends the run with both places", async () => {
  const twice = {
    "in/a.jsonl": [{ id: 1, prompt: "a" }, { id: 2, prompt: "b" }],
    "in/b.jsonl": [{ id: 3, prompt: "c" }, { id: 2, prompt: "d" }],
  };
  const run = await Preparing.of(twice, { inputs: [{ path: "DIR/in" }] });
  match(
    await run.failure(),
    /Cannot prepare b\.jsonl row 2 because its id '2' already belongs to a\.jsonl row 2\. Fix:/,
  );
  const by_content = await Preparing.of(twice, { inputs: [{ path: "DIR/in", ids: "content" }] });
  await by_content.done();
});

Deno.test("equal rows that stay have one id, which a sentence says", async () => {
  const run = await Preparing.of({ "a.jsonl": [{ prompt: "a" }, { prompt: "a" }] }, {
    inputs: [{ path: "DIR/a.jsonl" }],
    deduplicate: "none",
  });
  match(await run.failure(), /a\.jsonl row 2 .* a\.jsonl row 1\. .*`deduplicate: row`/);
});

Deno.test("a column to keep that no row has is a wrong name", async () => {
  const inputs = [{ path: "DIR/in", keep: { level: "levle" } }];
  const run = await Preparing.of(FILES, { inputs });
  match(
    await run.failure(),
    /Cannot keep 'levle' as 'level' because no row of a\.jsonl or 1 more files has it/,
  );
});
