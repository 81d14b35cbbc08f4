import { deepStrictEqual, match, notStrictEqual, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { readDerivedJson } from "../../../engine/mod.ts";
import { Home } from "../../../runs/mod.ts";
import { readHubFile } from "../../../workers/line/hub_door.ts";
import { readWorkerStates } from "../../../workers/mod.ts";
import { homeNonce } from "../../../workers/processes/process_sweep.ts";

/** What a power cut, a full disk or a person may leave in a file. */
const CONTENTS = fc.oneof(
  fc.constantFrom(
    "",
    "\0\0\0\0",
    "{",
    '{"torn',
    "null",
    "[]",
    "3",
    '"text"',
    '{"epoch":"x"}',
    '{"workers":{}}',
  ),
  fc.string({ maxLength: 40 }),
  fc.json({ maxDepth: 2 }),
);

Deno.test("files that can be made again read as nothing, whatever is in them", async () => {
  const dir = await Deno.makeTempDir({ prefix: "derived_" });
  const run = `${dir}/runs/a`;
  await Deno.mkdir(run, { recursive: true });
  const home = Home.open(dir);
  try {
    await fc.assert(fc.asyncProperty(CONTENTS, async (text) => {
      for (const name of ["hub.json", "workers.json", "metrics.json"]) {
        await Deno.writeTextFile(`${run}/${name}`, text);
      }
      strictEqual(readHubFile(`${run}/hub.json`), null);
      deepStrictEqual(readWorkerStates(dir, "a"), []);
      const { workers, metrics } = await home.liveFacts("a");
      deepStrictEqual(workers, []);
      for (const value of Object.values(metrics)) strictEqual(typeof value, "number");
    }));
    await Deno.remove(run, { recursive: true });
    deepStrictEqual(await home.liveFacts("a"), { workers: [], metrics: {} });
  } finally {
    await home.close();
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("readDerivedJson() reads a directory as nothing", async () => {
  const dir = await Deno.makeTempDir({ prefix: "derived_" });
  strictEqual(readDerivedJson(dir), null);
  await Deno.remove(dir);
});

Deno.test("a torn nonce of a home is created again, once", async () => {
  const dir = await Deno.makeTempDir({ prefix: "nonce_" });
  try {
    const first = await homeNonce(dir);
    for (const torn of ["", "\n", first.slice(0, 8), "../x"]) {
      await Deno.writeTextFile(`${dir}/nonce`, torn);
      const again = await homeNonce(dir);
      match(again, /^[0-9a-f-]{36}$/);
      notStrictEqual(again, first);
      strictEqual(await homeNonce(dir), again);
    }
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
