import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import type { Config, OnlineConfig } from "../../../configs/mod.ts";
import { type Row, tableOf } from "../../../data/mod.ts";
import { type EngineError, InvalidInputError } from "../../../engine/mod.ts";
import { SHIPPED } from "../../../flows/mod.ts";
import { checkRewards, createRun, executeRun, Home } from "../../../runs/mod.ts";
import { online } from "../../../flows/online.ts";
import { onlineConfig, scratch } from "../../flows/fixtures.ts";

const dir = await scratch();
Deno.test.afterAll(() => Deno.remove(dir, { recursive: true }));

const row = (id: string, rest: Partial<Row> = {}): Row => ({
  row_id: id,
  prompt: "p",
  answer: "7",
  columns: { unit: "m", empty: null },
  ...rest,
});
const table = (...rows: Row[]) => tableOf(rows, "digest");
const GOOD = table(row("a"), row("b"));

/** A file with one function. */
async function fileOf(name: string, text: string): Promise<string> {
  await Deno.writeTextFile(`${dir}/${name}.py`, text);
  return `${dir}/${name}.py:f`;
}

type Checked =
  & { reward: object[]; train?: typeof GOOD; eval?: typeof GOOD }
  & Partial<Record<keyof OnlineConfig, unknown>>;

async function check({ train = GOOD, eval: held = GOOD, ...overrides }: Checked): Promise<void> {
  const config = { ...onlineConfig("/model", { evaluate: {} }), ...overrides } as Config;
  await checkRewards(config, { rows: { train, eval: held } });
}

async function refusal(checked: Checked): Promise<string> {
  const error = await check(checked).then(() => null, (error: EngineError) => error);
  strictEqual(error instanceof InvalidInputError, true, String(error));
  return error!.message;
}

Deno.test("checkRewards() names the first row without a score, and counts them", async () => {
  const broken = table(
    row("a"),
    row("b", { answer: undefined }),
    row("c"),
    row("d", { answer: "seven" }),
  );
  const fix =
    /Fix: correct or remove them, or name the field that has it in data\.train\[\]\.fields$/;
  const cases: [object, RegExp][] = [
    [
      { name: "exact_match" },
      /^Cannot start because 1 of 4 rows .* row 'b' of data\.train: .*exact_match because the row has no answer/,
    ],
    [
      { name: "gsm8k" },
      /^Cannot start because 2 of 4 rows .* row 'b' of data\.train: .*gsm8k because the row's answer is not a number/,
    ],
  ];
  for (const [reward, says] of cases) {
    const message = await refusal({ reward: [{ name: "length" }, reward], train: broken });
    match(message, says);
    match(message, fix);
    await check({ reward: [reward] });
  }
});

Deno.test("checkRewards() checks every row that will be scored, and no others", async () => {
  const broken = table(row("a", { answer: undefined }));
  const reward = [{ name: "exact_match" }];
  match(await refusal({ reward, eval: broken }), /row 'a' of data\.eval/);
  await check({ reward, eval: broken, evaluate: null });
  match(await refusal({ reward, eval: broken, flow: "supervised" }), /row 'a' of data\.eval/);
  await check({ reward, train: broken, flow: "supervised" });
  await check({ reward, train: broken, flow: "evaluate" });
  await check({ reward, train: broken, flow: "preference" });
});

Deno.test("checkRewards() requires the columns that a Python function takes", async () => {
  const takes = await fileOf("takes", "def f(completion, answer, unit, level=1): return 1\n");
  const python = (settings = {}) => [{ name: "python", source: takes, ...settings }];
  await check({ reward: python() });
  match(
    await refusal({ reward: python(), train: table(row("a"), row("b", { columns: {} })) }),
    /^Cannot start because 1 of 2 rows .* row 'b' of data\.train: Cannot score with '.*takes\.py:f' because the row has no 'unit'/,
  );
  match(
    await refusal({ reward: python(), eval: table(row("a", { answer: undefined })) }),
    /has no 'answer'/,
  );
  match(await refusal({ reward: python({ needs: ["unit", "empty"] }) }), /has no 'empty'/);
});

Deno.test("checkRewards() says why a Python function cannot be imported", async () => {
  const good = await fileOf("good", "print('noise')\ndef f(completion): return 1\n");
  const cases: [string, RegExp][] = [
    [
      await fileOf("raises", "def g():\n  raise KeyError('at import')\ng()\n"),
      /KeyError: 'at import'\n {2}File ".*raises\.py", line 3/,
    ],
    [await fileOf("other", "def g(): pass\n"), /has no function 'f'/],
    [`${dir}/nowhere.py:f`, /there is no such file/],
    [
      await fileOf("exits", "import os; os._exit(4)\n"),
      /the import ended the process \(exit code 4\)/,
    ],
  ];
  for (const [source, says] of cases) {
    const message = await refusal({
      reward: [{ name: "python", source: good }, { name: "python", source, label: "second" }],
    });
    match(message, new RegExp(`^Cannot import reward '${source}'`));
    match(message, says);
    strictEqual(message.includes("noise"), false);
  }
  await check({ reward: [{ name: "python", source: good }] });
  const unset = [{ name: "python", source: good, env: ["A_VARIABLE_THAT_IS_NOT_SET"] }];
  match(
    await refusal({ reward: unset }),
    /its env names A_VARIABLE_THAT_IS_NOT_SET, which is not set here\. Fix: /,
  );
});

Deno.test("checkRewards() knows the signatures of other frameworks, and names them", async () => {
  const verl = await fileOf("verl", "def f(data_source, solution_str, ground_truth): return 1\n");
  await check({ reward: [{ name: "python", source: verl }] });
  match(
    await refusal({
      reward: [{ name: "python", source: verl }],
      train: table(row("a", { answer: undefined })),
    }),
    /because the row has no 'answer'\. Fix/,
  );
  const other = await fileOf("unknown", "def f(questions, replies): return 1\n");
  match(
    await refusal({ reward: [{ name: "python", source: other }] }),
    /no 'questions', and its signature is none of trl, verl, .*nemo_gym, which `style` may name/,
  );
  const two = await fileOf("two", "def f(completions, answers, **kwargs): return []\n");
  match(await refusal({ reward: [{ name: "python", source: two }] }), /`style: trl`/);
  await check({ reward: [{ name: "python", source: two, style: "verifiers_group" }] });
});

Deno.test("executeRun() looks at rewards and rows before anything of a new run is recorded, for whoever has not", async () => {
  const home = Home.open(`${dir}/home`);
  await Deno.writeTextFile(`${dir}/rows.jsonl`, `{"prompt":"a","answer":"1"}\n{"prompt":"b"}\n`);
  const data = { train: [{ path: `${dir}/rows.jsonl` }] };
  const source = await fileOf("broken", "import nothing_like_this\n");
  const rewards = { rows: { name: "exact_match" }, import: { name: "python", source } };
  for (const [id, reward] of Object.entries(rewards)) {
    const config = onlineConfig("/model", { data, reward: [reward] });
    const head = await createRun(home, online, { config, id, entry: `${SHIPPED}online` });
    const run = executeRun(home, { head, graph: online.build(config) });
    await rejects(
      run,
      id === "rows" ? /1 of 2 rows cannot be scored/ : /No module named 'nothing_like_this'/,
    );
    deepStrictEqual(await home.store.read(id, {}), []);
  }
  home.store.close();
});

Deno.test("checkRewards() ends with the signal before it looks for an interpreter", async () => {
  const reward = [{ name: "python", source: await fileOf("stopped", "def f(row): return 1") }];
  const config = { ...onlineConfig("/model"), reward } as unknown as Config;
  await rejects(checkRewards(config, { rows: { train: GOOD }, signal: AbortSignal.abort() }), {
    code: "drained",
  });
});
