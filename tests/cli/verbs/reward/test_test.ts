import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { endAll, json, rl } from "../../fixtures.ts";
import { at, GOOD, home } from "../../data_home.ts";

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
  match(thrown.out, /^style holdfast, a call scores one sample: its parameters completion and row/);
  match(
    thrown.out,
    /\n1 {2}\w+ {2}"2"\nFAILED {2}\w+ {2}"4"\n {2}\| error: ValueError: cannot grade this\n/,
  );
  match(thrown.out, /\n2 rows, 1 failed \(error 1\), p50 /);
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

/** The rows of a file, and what `reward test` prints for them with a function of `styles`. */
async function styled(name: string, rows: object[], ...options: string[]) {
  const data = `${home}/styled.jsonl`;
  await Deno.writeTextFile(data, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const source = new URL(`../../../rewards/styles/${name}`, import.meta.url).pathname;
  return await rl(["reward", "test", source, "--data", data, ...at, ...options]);
}

Deno.test("reward test says how a function of another framework is called", async () => {
  const columns = { extra_info: { split: "train" }, data_source: "gsm8k" };
  const row = (completion: string) => ({
    prompt: [{ role: "user", content: "1+1?" }],
    reward_model: { style: "rule", ground_truth: "2" },
    ...columns,
    completion,
  });
  const verl = await styled("verl.py:compute_score", [row("it is 2"), row("3")]);
  strictEqual(verl.code, 0, verl.err);
  match(
    verl.out,
    /^style verl, a call scores one sample: its parameters data_source and solution_/,
  );
  match(verl.out, /\n1 {2}\w+ {2}"it is 2"\n0 {2}\w+ {2}"3"\n2 rows, 0 failed, p50 /);
  const slime = await styled("slime.py:batched_custom_rm", [row("1"), row("four")]);
  match(slime.out, /^style slime_group, a call scores all samples of a prompt: .*\n0\.25 .*\n1 /);
});

Deno.test("reward test refuses a signature of two styles, and --style decides", async () => {
  const rows = [{ prompt: "a", answer: "1" }];
  const two = await styled("mixed.py:ambiguous", rows);
  strictEqual(two.code, 2);
  match(
    two.err,
    /its style may be trl \(.*\) or verifiers_group \(.*\)\. Fix: name one: `style: trl`/,
  );
  const one = await styled("mixed.py:ambiguous", rows, "--style", "verifiers_group");
  match(one.out, /^style verifiers_group, .*: `style` names it\n0 /);
  const wrong = await styled("mixed.py:ambiguous", rows, "--style", "tlr");
  strictEqual(wrong.code, 2);
  match(wrong.err, /Cannot use 'tlr' for --style .*Fix: give one of holdfast, trl, verl/);
  const shipped = await rl(["reward", "test", "gsm8k", "--data", GOOD, "--style", "trl", ...at]);
  strictEqual(shipped.code, 2);
  match(shipped.err, /Cannot use --style with 'gsm8k' because it is no function in Python/);
});
