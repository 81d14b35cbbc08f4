import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { inProcess } from "../in_process.ts";

const REWARD = "{ name: length, unit: characters, max: 8 }";

Deno.test("rescore shows recorded and new rewards side by side", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  await executeFake(home, "a");
  const run = (...args: string[]) => inProcess(["rescore", "a", ...args], { home });
  const { code, out, err } = await run("--reward", REWARD);
  deepStrictEqual([code, err], [0, ""]);
  const [head, recorded, now, length, last] = out.trim().split("\n");
  match(head!, /^reward +samples +mean +std +least +25 % +50 % +75 % +greatest$/);
  const cells = (line: string) => line.trim().split(/ {2,}/).slice(1);
  match(recorded!, /^recorded +4 /);
  deepStrictEqual([cells(now!), cells(length!)], [cells(recorded!), cells(recorded!)]);
  strictEqual(last, "0 of 4 samples of a changed, 0 results were kept");
  const halved = await run("--reward", "{ name: length, unit: characters, max: 8, weight: 0.5 }");
  match(halved.out, /^round 1 draw \d+ sample \d: [\d.]+ -> [\d.]+$/m);
  const json = JSON.parse((await run("--reward", REWARD, "--round", "1", "--json")).out);
  deepStrictEqual([json.run, json.samples, json.changed], ["a", 4, 0]);
});

Deno.test("rescore fails if a sample does, and refuses what it does not know", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  await executeFake(home, "a");
  const run = (...args: string[]) => inProcess(["rescore", "a", ...args], { home });
  const failed = await run("--reward", "multiple_choice");
  strictEqual(failed.code, 3);
  match(failed.out, /^4 without a reward: reward_error: multiple_choice: Cannot score/m);
  const unknown = await run("--reward", "mth");
  strictEqual(unknown.code, 2);
  match(unknown.err, /Cannot use reward 'mth' because there is no reward 'mth'/);
});

Deno.test("rescore asks about a function that sees every process of root's machine", async () => {
  const home = await freshFakeHome();
  const free = "{ name: /nowhere.py:f, isolate: false }";
  const { err } = await inProcess(["rescore", "nobody", "--reward", free], { home });
  const question =
    /^Is this intended\? reward \/nowhere\.py:f has isolate: false and runs as root: /m;
  strictEqual(question.test(err), Deno.uid() === 0, err);
});
