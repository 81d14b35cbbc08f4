import { deepStrictEqual, match } from "node:assert/strict";
import { createFakeRun, freshFakeHome } from "../../../runs/fake_home.ts";
import { inProcess } from "../../in_process.ts";

const home = await freshFakeHome();
await createFakeRun(home, "a", { rounds: 1 });
await Deno.mkdir(`${home.dir}/runs/a/final`, { recursive: true });

Deno.test("adapter merge refuses runs that do not exist or have no adapter", async () => {
  const absent = await inProcess(["adapter", "merge", "b"], { home });
  match(absent.err, /^Cannot find run 'b'/);
  const whole = await inProcess(["adapter", "merge", "a", "--to", "x"], { home });
  match(
    whole.err,
    /^Cannot merge the adapter of run 'a' because '.*final' is a whole model already/,
  );
  deepStrictEqual([absent.code, whole.code], [2, 2]);
});
