import { match, strictEqual } from "node:assert/strict";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { inProcess } from "../in_process.ts";

Deno.test("attach shows the newest run, and refuses one that there is not, without its escape codes", async () => {
  const home = await freshFakeHome();
  const none = await inProcess(["attach"], { home });
  strictEqual(none.code, 2);
  match(none.err, /has none: start one with 'run CONFIG'/);
  await createFakeRun(home, "a", { rounds: 2 });
  await executeFake(home, "a");
  const { code, out, err } = await inProcess(["attach"], { home });
  strictEqual(code, 0);
  strictEqual(out, "");
  match(err, /^run a\nround 2\/2 {2}reward [\s\S]*\nrun a is done\./);
  const unknown = await inProcess(["attach", "b"], { home });
  strictEqual(unknown.code, 2);
  match(unknown.err, /Cannot find run 'b'/);
  const escaping = await inProcess(["attach", "\x1b[31mb"], { home });
  strictEqual(escaping.code, 2);
  match(escaping.err, /Cannot use '\\u001b\[31mb' as a run's id/);
});
