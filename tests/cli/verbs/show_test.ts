import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { inProcess } from "../in_process.ts";

const home = await freshFakeHome();
for (const id of ["a", "b"]) await createFakeRun(home, id, { rounds: 1 });
await executeFake(home, "a");

Deno.test("show prints a fact a line, with --json the same as fields", async () => {
  const { code, out } = await inProcess(["show", "a"], { home });
  strictEqual(code, 0);
  match(out, /^run {8}a \(online\)\nstatus {5}done\n/);
  match(out, /^ledger {5}read 2 = trained 2 \+ filtered 0 \+ stale 0 \+ failed 0 \+ pending 0$/m);
  const view = JSON.parse((await inProcess(["show", "a", "--json"], { home })).out);
  deepStrictEqual([view.id, view.status, view.ledger.trained], ["a", "done", 2]);
});

Deno.test("show without an id shows the newest run", async () => {
  const { out } = await inProcess(["show", "--json"], { home });
  strictEqual(JSON.parse(out).id, "b");
});

Deno.test("show of an unknown run exits 2 and prints nothing", async () => {
  const { code, out, err } = await inProcess(["show", "nope"], { home });
  deepStrictEqual([code, out], [2, ""]);
  match(err, /^Cannot find run 'nope' in .*: 'runs' lists its 2$/m);
});
