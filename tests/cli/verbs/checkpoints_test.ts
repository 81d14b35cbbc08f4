import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { inProcess } from "../in_process.ts";

const home = await freshFakeHome();
await createFakeRun(home, "a", { rounds: 2 });
await executeFake(home, "a");
type Kept = { dir: string; round: number; kept: string[]; problem: string | null };

Deno.test("checkpoints lists what is kept, why, and where", async () => {
  const { code, out } = await inProcess(["checkpoints", "a", "--json"], { home });
  const [kept, ...others] = JSON.parse(out) as Kept[];
  deepStrictEqual([code, others], [0, []]);
  deepStrictEqual([kept!.round, kept!.kept, kept!.problem], [2, ["last", "in_use"], null]);
  const table = (await inProcess(["checkpoints", "a"], { home })).out.split("\n");
  match(table[0]!, /^version +round +ranks +size +kept as +state +open with from_pretrained$/);
  match(table[1]!, /^[0-9a-f]{12} +2 +1 +0\.0 MiB +last, in_use +not checked +\/.*\/hf$/);
});

Deno.test("checkpoints --verify exits 3 and names the file that is damaged", async () => {
  const whole = await inProcess(["checkpoints", "a", "--verify"], { home });
  deepStrictEqual([whole.code, / whole /.test(whole.out)], [0, true]);
  const [{ dir }] = JSON.parse((await inProcess(["checkpoints", "--json"], { home })).out);
  await Deno.writeTextFile(`${dir}/weights.json`, "damaged", { append: true });
  const damaged = await inProcess(["checkpoints", "a", "--verify"], { home });
  deepStrictEqual([damaged.code, damaged.out.includes("weights.json is not")], [3, true]);
  strictEqual((await inProcess(["checkpoints", "a"], { home })).code, 0, "nobody asked");
});

Deno.test("checkpoints of a run that has none says so", async () => {
  await createFakeRun(home, "new", { rounds: 1 });
  const { code, out } = await inProcess(["checkpoints", "new"], { home });
  deepStrictEqual([code, out], [0, "no checkpoint yet\n"]);
});
