import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { onceDurable } from "../../crashes/deaths.ts";
import { Preparing } from "./preparing.ts";

const numbered = (count: number) =>
  Array.from({ length: count }, (_, i) => ({ prompt: `p ${i}`, level: i }));
const one = (files: Record<string, readonly object[] | string>, more: object = {}) =>
  Preparing.of(files, { inputs: [{ path: "DIR/in.jsonl" }], ...more });

Deno.test("a file is read in parts, and a resume continues after the last one", async () => {
  const files = { "in.jsonl": numbered(9000) };
  const calm = await one(files);
  await calm.done();
  const steps = [...calm.moments].filter((name) => name.includes("/part#"));
  strictEqual(steps.length, 3, [...calm.moments].join("\n"));
  for (const step of steps) {
    const killed = await one(files);
    await killed.done({ deaths: [onceDurable(step)] });
    strictEqual(killed.deaths, 1);
    deepStrictEqual(await killed.digests(), await calm.digests(), step);
    // The last engine records the parts that were left, and no earlier one again.
    const again = [...killed.moments].filter((name) => steps.includes(name));
    deepStrictEqual(again, steps.slice(steps.indexOf(step) + 1));
  }
});

Deno.test("a broken row ends the run with its file and line, or is counted", async () => {
  const files = { "in.jsonl": '{"prompt":"a"}\n{"prompt":"b"\n{"question":["x"]}\n{"x":1}\n' };
  match(await (await one(files)).failure(), /in\.jsonl:2: the line is not JSON/);
  const dropping = await one(files, { on_bad_row: "drop" });
  await dropping.done();
  const { rows, dropped_rows } = await dropping.card();
  deepStrictEqual(rows, { read: 4, written: 1, dropped: { unreadable: 3 } });
  match(dropped_rows[1]!.because, /^in\.jsonl:3 question\.0: expected \{ role, content \}/);
  match(dropped_rows[2]!.because, /^in\.jsonl:4: the row has no 'prompt'/);
});

Deno.test("a column that changes its type ends the run with both rows", async () => {
  const inputs = [{ path: "DIR/in", keep: { level: "level" } }];
  const within = await Preparing.of({
    "in/a.jsonl": [{ prompt: "a", level: 1 }, { prompt: "b", level: "2" }],
  }, { inputs, on_bad_row: "drop" });
  match(
    await within.failure(),
    /a\.jsonl:2 level: the column is text here and a whole number in a\.jsonl:1/,
  );
  const across = await Preparing.of({
    "in/a.jsonl": [{ prompt: "a", level: 1 }, { prompt: "b", level: 2 }],
    "in/b.csv": "prompt,level\nc,\nd,3\n",
  }, { inputs });
  match(
    await across.failure(),
    /b\.csv row 2 level: the column is text here and a whole number in a\.jsonl:1/,
  );
});

Deno.test("a file that has changed since the run started ends it", async () => {
  const run = await one({ "in.jsonl": numbered(3) });
  const listed = onceDurable("result list_inputs");
  const changed = {
    crash_after: (...args: Parameters<NonNullable<typeof listed.crash_after>>) => {
      const dies = listed.crash_after!(...args);
      if (dies) Deno.writeTextFileSync(`${run.dir}/in.jsonl`, '{"prompt":"other"}\n');
      return dies;
    },
  };
  match(
    await run.failure({ deaths: [changed] }),
    /Cannot read in\.jsonl because the file has changed since the run started/,
  );
});

Deno.test("an image stays in its column, byte by byte", async () => {
  const image = { bytes: { base64: "iVBORw0KGgo=" }, path: "1.png" };
  const files = { "raw.jsonl": [{ question: "q", image }, { question: "r", image: null }] };
  const run = await Preparing.of(files, {
    inputs: [{ path: "DIR/raw.jsonl", keep: { image: "image" } }],
  });
  await run.done();
  const { loadRows } = await import("../../../../data/mod.ts");
  const table = await loadRows([{ path: `${run.out}/train.parquet` }], { home: run.dir });
  const images = (await table.rows([0, 1])).map(({ columns }) => columns.image);
  deepStrictEqual(images, [image, null]);
});
