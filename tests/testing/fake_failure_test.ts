import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { EngineError } from "../../engine/mod.ts";
import { checkFiles, checkModel } from "../../testing/fake_failure.ts";
import { writeFakeModel } from "../../testing/mod.ts";
import type { Checkpoint } from "../../workers/mod.ts";

async function model() {
  const dir = await Deno.makeTempDir({ prefix: "fake_failure_test_" });
  const { digest, file } = await writeFakeModel(dir, 0.5);
  return { dir, digest, checkpoint: { dir, files: [file] } as unknown as Checkpoint };
}
const failsWith = (code: string, words: RegExp) => (error: unknown) => {
  deepStrictEqual([error instanceof EngineError && error.code, words.test(String(error))], [
    code,
    true,
  ], String(error));
  return true;
};

Deno.test("checkFiles() passes files as they were recorded", async () => {
  strictEqual(await checkFiles((await model()).checkpoint), undefined);
});

Deno.test("checkFiles() names a file that is changed or missing", async () => {
  const { dir, checkpoint } = await model();
  await Deno.writeTextFile(`${dir}/weights.json`, "0.25");
  await rejects(
    checkFiles(checkpoint),
    failsWith("infrastructure", /'weights.json' is not the recorded one/),
  );
  await Deno.remove(`${dir}/weights.json`);
  await rejects(
    checkFiles(checkpoint),
    failsWith("bad_data", /its file 'weights.json' is missing/),
  );
});

Deno.test("checkModel() refuses other weights than the recorded ones; null: any", async () => {
  const { dir, digest } = await model();
  await checkModel(dir, digest);
  await checkModel(dir, null);
  await writeFakeModel(dir, 0.75);
  await rejects(
    checkModel(dir, digest),
    failsWith("bad_data", /Fix: restore the recorded weights/),
  );
});
