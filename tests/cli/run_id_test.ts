import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { main } from "../../cli/main.ts";
import { SqliteStore } from "../../engine/mod.ts";
import { newRun } from "../contracts/store_rows.ts";
import { BAD_IDS } from "../contracts/run_ids.ts";
import { SMALL } from "./fixtures.ts";

/** A command in this process: its exit code, and what it printed. */
async function run(args: string[]): Promise<{ code: number; text: string }> {
  const said: string[] = [];
  const { log, error } = console;
  const write = Deno.stderr.writeSync;
  const take = (text: unknown) => void said.push(String(text));
  Object.assign(console, { log: take, error: take });
  Deno.stderr.writeSync = (bytes) => (take(new TextDecoder().decode(bytes)), bytes.length);
  try {
    return { code: await main(args), text: said.join("\n") };
  } finally {
    Object.assign(console, { log, error });
    Deno.stderr.writeSync = write;
    Deno.exitCode = 0;
  }
}

const names = (dir: string) => [...Deno.readDirSync(dir)].map(({ name }) => name).sort();

Deno.test("no verb records a run under an id that is none: exit 2, one sentence, and nothing is written anywhere", async () => {
  const dir = await Deno.makeTempDir({ prefix: "run_id_test_" });
  for (const id of BAD_IDS) {
    for (const args of [["run", SMALL], ["run", SMALL, "--detach"], ["fork", "a", "--round", "1"]]) {
      const { code, text } = await run([...args, `--id=${id}`, "--home", `${dir}/home`]);
      deepStrictEqual([code, names(dir)], [2, []], `${args} --id ${JSON.stringify(id)}: ${text}`);
      match(text, /as a run's id: an id is .*Fix: choose another --id/);
    }
  }
});

Deno.test("a run of a bad id in the store is left out with a line, and refused with a sentence; the others are listed", async () => {
  const home = await Deno.makeTempDir({ prefix: "run_id_test_" });
  const store = new SqliteStore(`${home}/holdfast.db`);
  for (const id of ["good", "../..", "a/b"]) await store.create({ ...newRun(id), graph: '{"name":"g"}' });
  await store.close();
  const at = ["--home", home];
  const listed = await run(["runs", ...at]);
  deepStrictEqual([listed.code, /^good +run good/m.test(listed.text)], [0, true], listed.text);
  match(listed.text, /skipped 2 of the store's runs because their ids are not directory names: 'a\/b', '\.\.\/\.\.'\./);
  strictEqual((await run(["gc", ...at])).code, 0);
  for (const verb of ["show", "logs", "resume", "cancel", "checkpoints", "rollouts", "verify"]) {
    const { code, text } = await run([verb, "../..", ...at]);
    deepStrictEqual([verb, code], [verb, 2]);
    match(text, /Cannot use '\.\.\/\.\.' as a run's id/);
  }
});
