import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { InvalidInputError } from "../../engine/mod.ts";
import { mergeAdapter } from "../../runs/mod.ts";
import { fakePython } from "../workers/environments/fake_python.ts";
import { createFakeRun, freshFakeHome } from "./fake_home.ts";

const home = await freshFakeHome();
await createFakeRun(home, "a", { rounds: 1 });
const final = `${home.dir}/runs/a/final`;

/** It is refused before an environment is made: the home has none. */
async function refused(target: string | null, why: string): Promise<void> {
  const options = {
    target,
    onSetup: () => {
      throw new Error("an environment is made");
    },
  };
  await rejects(mergeAdapter(home, (await home.store.head("a"))!, options), (error) => {
    strictEqual((error as Error).message, `Cannot merge the adapter of run 'a' because ${why}`);
    return error instanceof InvalidInputError;
  });
}

Deno.test("mergeAdapter() refuses runs without an adapter and places to write", async () => {
  await refused(null, `it has not exported a model: '${final}' is missing`);
  await Deno.mkdir(final, { recursive: true });
  await refused(null, `'${final}' is a whole model already, which needs no merge`);
  await Deno.writeTextFile(`${final}/adapter_config.json`, "{}");
  await refused(final, `'${final}' exists. Fix: remove it, or name a different one with --to DIR`);
  const nowhere = `${home.dir}/nowhere`;
  await refused(`${nowhere}/merged`, `'${nowhere}' is missing. Fix: create it`);
});

Deno.test("mergeAdapter() opens the base as the run opened it", async () => {
  const recordFile = `${home.dir}/told`;
  const python = await fakePython(
    home.dir,
    `case "$*" in *merge_adapter*) printf '%s' "$5" > '${recordFile}';; *find_spec*) ;; ` +
      `*) echo 3.11.0 /p;; esac`,
  );
  const model = { trust_remote_code: true, open_with_missing: true, open_with_unexpected: false };
  const config = { model: { path: `${home.dir}/model`, ...model }, trainer: { python } };
  await createFakeRun(home, "b", { rounds: 1, ...config });
  await Deno.mkdir(`${home.dir}/runs/b/final`, { recursive: true });
  await Deno.writeTextFile(`${home.dir}/runs/b/final/adapter_config.json`, "{}");
  strictEqual(await mergeAdapter(home, (await home.store.head("b"))!, { target: null }), 0);
  deepStrictEqual(JSON.parse(await Deno.readTextFile(recordFile)), model);
});
