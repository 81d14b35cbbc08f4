import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { inProcess } from "../in_process.ts";

const home = await freshFakeHome();
await createFakeRun(home, "a", { rounds: 1 });
await executeFake(home, "a");
const KEY = "round/1/train_policy";

Deno.test("why prints what an entry waited for, each start and its result", async () => {
  const { code, out } = await inProcess(["why", "a", KEY], { home });
  strictEqual(code, 0);
  const times = /\d\d:\d\d:\d\d\.\d{3}/g;
  const lines = out.replaceAll(times, "TIME").trimEnd().split("\n");
  deepStrictEqual(lines.slice(0, 5), [
    `entry      ${KEY} of run a`,
    "stage      train_policy@1 on trainer",
    "state      done",
    "waited for round/1/assign_credit, ready at TIME",
    "start 1    TIME epoch 1: its inputs were ready",
  ]);
  match(lines[5]!, /^result {5}TIME epoch 1, after \d+ ms$/);
  match(lines[6]!, /^artifact {3}[0-9a-f]{12} \d+ B$/);
  strictEqual(lines.length, 7);
});

Deno.test("why --json has the entry's fields", async () => {
  const why = JSON.parse((await inProcess(["why", "a", KEY, "--json"], { home })).out);
  deepStrictEqual([why.run, why.key, why.state, why.starts.length], ["a", KEY, "done", 1]);
});

Deno.test("why of a key that the run lacks exits 2", async () => {
  const { code, out, err } = await inProcess(["why", "a", "nope"], { home });
  deepStrictEqual([code, out, err], [
    2,
    "",
    "Cannot explain 'nope' because run 'a' has no such entry\n",
  ]);
});
