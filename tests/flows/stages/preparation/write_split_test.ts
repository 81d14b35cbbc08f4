import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { onceDurable } from "../../crashes/deaths.ts";
import { Preparing } from "./preparing.ts";

const FILES = { "a.jsonl": [{ prompt: "a" }, { prompt: "b" }, { prompt: "c" }] };
const CONFIG = { inputs: [{ path: "DIR/a.jsonl" }] };

Deno.test("nothing left, or an empty split, ends the run before a file is written", async () => {
  const none = await Preparing.of(FILES, { ...CONFIG, lengths: { prompt_characters_min: 2 } });
  match(await none.failure(), /Cannot write any split because no row is left \(3 too_short\)/);
  deepStrictEqual(Object.keys(await none.digests()), ["owner.json"]);
  const empty = await Preparing.of({ "a.jsonl": "\n" }, CONFIG);
  match(await empty.failure(), /no row is left \(the inputs have no row that can be used\)/);
  const rare = await Preparing.of(FILES, { ...CONFIG, splits: { train: 1, eval: 1e-9 } });
  match(await rare.failure(), /Cannot write split 'eval' because it has no row/);
  deepStrictEqual(Object.keys(await rare.digests()), ["owner.json"]);
});

Deno.test("what a killed engine left is removed, and other files stay", async () => {
  const calm = await Preparing.of(FILES, CONFIG);
  await calm.done();
  const killed = await Preparing.of(FILES, CONFIG);
  const intent = onceDurable("intent write_split.train");
  const death = {
    crash_after: (...args: Parameters<NonNullable<typeof intent.crash_after>>) => {
      const dies = intent.crash_after!(...args);
      if (!dies) return false;
      Deno.writeTextFileSync(`${killed.out}/.train.parquet.0123456789abcdef.unfinished`, "PAR1");
      Deno.writeTextFileSync(`${killed.out}/.mine.unfinished`, "mine");
      return true;
    },
  };
  await killed.done({ deaths: [death] });
  strictEqual(killed.deaths, 1);
  deepStrictEqual(await killed.digests(), await calm.digests());
  deepStrictEqual((await killed.names()).filter((name) => name.startsWith(".")), [
    ".mine.unfinished",
  ]);
});

Deno.test("a written file that is gone is written again by the next engine", async () => {
  const calm = await Preparing.of(FILES, CONFIG);
  await calm.done();
  const lost = await Preparing.of(FILES, CONFIG);
  const result = onceDurable("result write_split.train");
  await lost.done({
    deaths: [{
      crash_after: (...args: Parameters<NonNullable<typeof result.crash_after>>) => {
        const dies = result.crash_after!(...args);
        if (dies) Deno.removeSync(`${lost.out}/train.parquet`);
        return dies;
      },
    }],
  });
  deepStrictEqual(await lost.digests(), await calm.digests());
});
