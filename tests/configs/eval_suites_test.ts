/** The suites of `configs/eval`. */
import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { type EvaluateConfig, loadConfig } from "../../configs/mod.ts";
import { loadRows } from "../../data/mod.ts";
import { answerReader, rightness } from "../../rewards/mod.ts";

const ROOM = new URL("../../configs/eval/", import.meta.url);
const BAD = decodeURIComponent(new URL("./bad", import.meta.url).pathname);
const NAMES = [...Deno.readDirSync(ROOM)].map(({ name }) => name).toSorted();
/** Suites whose answers are numbers. */
const NUMBERS = /^(aime|asdiv|amc23|gsm8k|svamp)/;

Deno.test("the suites of configs/eval ship", () => {
  deepStrictEqual(NAMES, [
    "aime24.yaml",
    "aime25.yaml",
    "aime26.yaml",
    "amc12_24.yaml",
    "amc23.yaml",
    "amo_bench.yaml",
    "asdiv.yaml",
    "brumo25.yaml",
    "gsm8k.yaml",
    "hmmt_feb25.yaml",
    "hmmt_nov25.yaml",
    "math500.yaml",
    "mmlu.yaml",
    "mmlu_pro.yaml",
    "olympiad_bench.yaml",
    "svamp.yaml",
  ]);
});

for (const name of NAMES) {
  Deno.test(`configs/eval/${name} names its source and its grader`, async () => {
    const file = decodeURIComponent(new URL(name, ROOM).pathname);
    const overrides = ["model.path=model", "data.eval.0.path=rows.jsonl"];
    const { config } = await loadConfig(file, { overrides, cwd: BAD });
    const { data, reward, flow } = config as EvaluateConfig;
    deepStrictEqual([flow, config.name], ["evaluate", name.replace(".yaml", "")]);
    strictEqual(data.eval[0]!.name, config.name);
    strictEqual(/^# .*Source: .*hub \w+/m.test(await Deno.readTextFile(file)), true);
    const grader = NUMBERS.test(name)
      ? "gsm8k"
      : name.startsWith("mmlu")
      ? "multiple_choice"
      : "math";
    strictEqual(rightness(reward, null).by, grader);
    if (grader === "gsm8k") {
      strictEqual(answerReader(reward[0]!)!("so it is \\boxed{204}."), "204");
    }
  });
}

/**
 * A row in the columns of each set that nobody here could fetch, as FeynRL's
 * `data_prep/shared_eval_benchmarks.py` at 4f7eafe and the cards of the sets name them, and what is
 * read of it.
 */
const ROWS: Record<string, { row: Record<string, unknown>; prompt: string; answer: string }> = {
  ...Object.fromEntries(
    ["aime26", "amc12_24", "brumo25", "hmmt_feb25", "hmmt_nov25"].map((name) => [
      name,
      {
        row: {
          problem_idx: 3,
          problem: "What is $1+1$?",
          answer: "\\frac{4}{2}",
          problem_type: [],
        },
        prompt: "What is $1+1$?",
        answer: "\\frac{4}{2}",
      },
    ]),
  ),
  amo_bench: {
    row: { question_id: 1, prompt: "Find $x$.", solution: "It is 2.", answer: "$\\boxed{2}$" },
    prompt: "Find $x$.",
    answer: "$\\boxed{2}$",
  },
  olympiad_bench: {
    row: { id: 1606, question: "Find all.", final_answer: ["2", "3"], subject: "Math" },
    prompt: "Find all.",
    answer: "2",
  },
  mmlu: {
    row: { question: "Which?", subject: "anatomy", choices: ["a", "b", "c", "d"], answer: 2 },
    prompt: "Which?\n\nA. a\nB. b\nC. c\nD. d\n",
    answer: "2",
  },
  mmlu_pro: {
    row: { question_id: 70, question: "Which?", options: ["a", "b"], answer: "B", answer_index: 1 },
    prompt: "Which?\n\nA. a\nB. b\n",
    answer: "B",
  },
};

for (const [name, { row, prompt, answer }] of Object.entries(ROWS)) {
  Deno.test(`configs/eval/${name}.yaml reads the columns of its set`, async () => {
    const dir = await Deno.makeTempDir({ prefix: "holdfast-eval-" });
    try {
      await Deno.writeTextFile(`${dir}/rows.jsonl`, `${JSON.stringify(row)}\n`);
      const file = decodeURIComponent(new URL(`${name}.yaml`, ROOM).pathname);
      const overrides = ["model.path=model", `data.eval.0.path=${dir}/rows.jsonl`];
      const { config } = await loadConfig(file, { overrides, cwd: BAD });
      const { data: { eval: sources } } = config as EvaluateConfig;
      const table = await loadRows(sources, { home: `${dir}/home` });
      const [read] = await table.rows([0]);
      const [message] = read!.prompt as { content: string }[];
      strictEqual(message!.content, `${prompt}\n${sources[0]!.instruction}`);
      strictEqual(read!.answer, answer);
    } finally {
      await Deno.remove(dir, { recursive: true });
    }
  });
}
