import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { SqliteStore } from "../../engine/mod.ts";
import { newRun } from "../contracts/store_rows.ts";
import { BAD_IDS } from "../contracts/run_ids.ts";
import { SMALL } from "./fixtures.ts";
import { inProcess } from "./in_process.ts";

async function run(args: string[]): Promise<{ code: number; text: string }> {
  const { code, out, err } = await inProcess(args);
  return { code, text: out + err };
}

const names = (dir: string) => [...Deno.readDirSync(dir)].map(({ name }) => name).sort();

Deno.test("no verb records a run under a bad id: exit 2, and nothing is written", async () => {
  const dir = await Deno.makeTempDir({ prefix: "run_id_test_" });
  for (const id of BAD_IDS) {
    for (
      const args of [["run", SMALL], ["run", SMALL, "--detach"], ["fork", "a", "--round", "1"]]
    ) {
      const { code, text } = await run([...args, `--id=${id}`, "--home", `${dir}/home`]);
      deepStrictEqual([code, names(dir)], [2, []], `${args} --id ${JSON.stringify(id)}: ${text}`);
      match(text, /as a run's id: an id is .*Fix: choose another --id/);
    }
  }
});

Deno.test("a run that another program wrote under a bad id is refused by name", async () => {
  const home = await Deno.makeTempDir({ prefix: "run_id_test_" });
  const store = new SqliteStore(`${home}/holdfast.db`);
  for (const id of ["good", "other"]) await store.create({ ...newRun(id), graph: '{"name":"g"}' });
  await store.close();
  using db = new DatabaseSync(`${home}/holdfast.db`);
  const rename = db.prepare("UPDATE runs SET id = ? WHERE id = ?");
  rename.run("../..", "other");
  const at = ["--home", home];
  const refusal = /Cannot read run '\.\.\/\.\.' because an id is .*Fix: remove its row/;
  const collected = await run(["gc", ...at]);
  strictEqual(collected.code, 2, collected.text);
  match(collected.text, refusal);
  const { code, out, err } = await inProcess(["runs", ...at]);
  deepStrictEqual([code, /^good +run good/m.test(out)], [0, true], out);
  match(err, refusal);
  strictEqual((await run(["checkpoints", "good", ...at])).code, 0);
  rename.run("other", "../..");
  for (const verb of ["show", "logs", "resume", "cancel", "checkpoints", "rollouts", "verify"]) {
    const { code, text } = await run([verb, "../..", ...at]);
    deepStrictEqual([verb, code], [verb, 2]);
    match(text, /Cannot use '\.\.\/\.\.' as a run's id/);
  }
  const listed = await run(["runs", ...at]);
  deepStrictEqual([listed.code, /^good +run good/m.test(listed.text)], [0, true], listed.text);
});
