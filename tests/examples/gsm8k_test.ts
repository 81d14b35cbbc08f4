/** The recipes of `examples/gsm8k` with the real model and the real problems. */
import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { dirname } from "node:path";
import { at, rl, show, withFreshHome } from "../crash/runs.ts";
import { runPython, smollm2, testOnRealInput } from "../e2e/smollm2.ts";
import { ensureTestEnvironments } from "../environments.ts";

const RECIPES = fileURLToPath(new URL("../../examples/gsm8k/", import.meta.url));

type Row = { id: string; question: string; answer: string; solution: string };

async function rowsOf(path: string): Promise<Row[]> {
  const text = await Deno.readTextFile(path);
  return text.trimEnd().split("\n").map((line) => JSON.parse(line) as Row);
}

await testOnRealInput(
  "the gsm8k recipes teach SmolLM2 solutions, then train it by GRPO from that model",
  async (input) => {
    const { HOLDFAST_PYTHON } = await ensureTestEnvironments();
    await withFreshHome(async (home) => {
      const rows = `${home}/rows`;
      await runPython(
        HOLDFAST_PYTHON!,
        [`${RECIPES}make_rows.py`, dirname(input.train), rows],
        {},
      );
      const [train, test] = [
        await rowsOf(`${rows}/train.jsonl`),
        await rowsOf(`${rows}/test.jsonl`),
      ];
      deepStrictEqual([train.length, test.length], [2579, 422]);
      for (const { answer, solution } of [...train, ...test]) {
        match(answer, /^-?[0-9.]+$/);
        ok(!solution.includes("<<"), solution);
        strictEqual(solution.split("\n#### ")[1]?.replaceAll(",", ""), answer);
      }
      const questions = new Set(train.map(({ question }) => question));
      deepStrictEqual(test.filter(({ question }) => questions.has(question)), []);

      const place = at({ home, store: null });
      const data = `data.train.0.path=${rows}/train.jsonl`;
      const model = `model.path=${await smollm2(input)}`;
      const few = ["rounds=1", "rows_per_round=4", data, model];
      const taught = await rl(["run", `${RECIPES}sft.yaml`, "--id", "t", ...few, ...place], {});
      strictEqual(taught.code, 0, taught.output);
      const options = [
        "rounds=1",
        "prompts_per_round=2",
        "samples_per_prompt=2",
        "sampler.tokens_max=16",
        "evaluate.problems=2",
        `evaluate.sets.0.data.0.path=${rows}/test.jsonl`,
        `model.path=${home}/runs/t/final`,
        data,
      ];
      const run = ["run", `${RECIPES}grpo.yaml`, "--id", "g", ...options, ...place];
      const learned = await rl(run, {});
      strictEqual(learned.code, 0, learned.output);
      const { status, evaluations } = await show(home, "g");
      strictEqual(status, "done");
      strictEqual(evaluations.length, 4);
    });
  },
);
