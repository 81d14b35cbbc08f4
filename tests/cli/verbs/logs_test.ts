import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { inProcess } from "../in_process.ts";

const home = await freshFakeHome();
await createFakeRun(home, "a", { rounds: 1 });
await executeFake(home, "a");
await createFakeRun(home, "silent", { rounds: 1 });
const dir = home.logsDir("a");
for (
  const [path, text] of [
    ["attempt_1/agent.log", "one\ntwo\nthree\n"],
    ["attempt_1/trainer.log", "old\n"],
    ["attempt_2/trainer.log", "new\n"],
    ["attempt_10/trainer.log", "newest\n"],
  ] as const
) {
  await Deno.mkdir(`${dir}/${path.split("/")[0]}`, { recursive: true });
  await Deno.writeTextFile(`${dir}/${path}`, text);
}

type Log = { path: string; lines: string[] };
async function logs(...args: string[]): Promise<Record<string, string[]>> {
  const { out } = await inProcess(["logs", "a", "--json", ...args], { home });
  const { logs } = JSON.parse(out) as { logs: Log[] };
  return Object.fromEntries(logs.map(({ path, lines }) => [path.slice(dir.length + 1), lines]));
}

Deno.test("logs shows each worker's newest log, counted by attempt", async () => {
  deepStrictEqual(await logs("--lines", "2"), {
    "attempt_1/agent.log": ["two", "three"],
    "attempt_10/trainer.log": ["newest"],
  });
});

Deno.test("logs --attempt shows the logs of one attempt", async () => {
  deepStrictEqual(await logs("--attempt", "1"), {
    "attempt_1/agent.log": ["one", "two", "three"],
    "attempt_1/trainer.log": ["old"],
  });
});

Deno.test("logs says where the logs of a run or an attempt would be", async () => {
  const silent = await inProcess(["logs", "silent"], { home });
  strictEqual(silent.code, 2);
  match(silent.err, /'silent' because none of its workers has started \(.*\/logs\/silent\)/);
  const attempt = await inProcess(["logs", "a", "--attempt", "3"], { home });
  match(attempt.err, /because attempt 3 has no logs: try without --attempt/);
});

Deno.test("logs --follow of an ended run prints every log from its start, and ends", async () => {
  const { code, out } = await inProcess(["logs", "a", "--follow"], { home });
  strictEqual(code, 0);
  deepStrictEqual(out.trimEnd().split("\n"), [
    "attempt_1/agent.log: one",
    "attempt_1/agent.log: two",
    "attempt_1/agent.log: three",
    "attempt_1/trainer.log: old",
    "attempt_2/trainer.log: new",
    "attempt_10/trainer.log: newest",
  ]);
});
