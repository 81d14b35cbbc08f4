import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { endAll, json, rl } from "./fixtures.ts";
import { at, GOOD, home } from "./data_home.ts";

Deno.test.afterAll(endAll);

Deno.test("reward test scores rows with a shipped reward: exit 0, and the reference answers are right", async () => {
  type Tested = { rows: number; failed: number; scores: Record<string, number> };
  const { rows, failed, scores } = await json<Tested>([
    "reward",
    "test",
    "exact_match",
    "--data",
    GOOD,
  ]);
  deepStrictEqual({ rows, failed, scores }, {
    rows: 2,
    failed: 0,
    scores: { "0.00": 1, "1.00": 1 },
  });
  const none = await rl(["reward", "test", "exact_mach", "--data", GOOD]);
  strictEqual(none.code, 2);
  match(none.err, /exact_mach.*did you mean exact_match/);
});

Deno.test("reward test runs a Python function apart: a throw is that row's failure and exit 3, a hang ends by its time limit", async () => {
  await Deno.writeTextFile(
    `${home}/mine.py`,
    `import time
def right(completion, row, **_):
    if row["answer"] == "3":
        raise ValueError("cannot grade this")
    return 1.0
def partly(answer):
    return None if answer == "3" else 1
def hangs(completion, row, **_):
    time.sleep(60)
`,
  );
  const test = (
    name: string,
  ) => ["reward", "test", `${home}/mine.py:${name}`, "--data", GOOD, ...at];
  const thrown = await rl(test("right"));
  strictEqual(thrown.code, 3, thrown.err);
  match(
    thrown.out,
    /^1 {2}\w+ {2}"2"\nFAILED {2}\w+ {2}"4"\n {2}\| error: ValueError: cannot grade this\n/,
  );
  match(thrown.out, /\n2 rows, 1 failed, p50 /);
  const partly = await rl(test("partly"));
  match(
    partly.out,
    /\nUNGRADED {2}\w+ {2}"4"\n2 rows, 0 failed, 1 ungraded, p50 .*\nscore 1\.00: # 1\n$/,
  );
  strictEqual(partly.code, 0, partly.err);
  const hung = await rl([...test("hangs"), "-n", "1", "--timeout-ms", "300"]);
  strictEqual(hung.code, 3);
  match(hung.out, /FAILED .*\n {2}\| timeout/);
  const missing = await rl(test("wrong"));
  strictEqual(missing.code, 2);
  match(missing.err, /mine\.py has no function 'wrong'/);
});
