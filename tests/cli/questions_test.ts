import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { endAll, freshHome, json, rl } from "./fixtures.ts";

Deno.test.afterAll(endAll);

const CONTEXT = 64;
const ROWS = 3;

/** A configuration for a model and rows that are there. */
async function written(
  dir: string,
  { tokens, prompts }: { tokens: number; prompts: number },
): Promise<string> {
  await Deno.mkdir(`${dir}/model`, { recursive: true });
  await Deno.writeTextFile(
    `${dir}/model/config.json`,
    JSON.stringify({ max_position_embeddings: CONTEXT }),
  );
  await Deno.writeTextFile(`${dir}/model/model.safetensors`, "");
  const rows = Array.from(
    { length: ROWS },
    (_, n) => JSON.stringify({ prompt: `say ${n}`, answer: String(n) }),
  );
  await Deno.writeTextFile(`${dir}/rows.jsonl`, rows.join("\n"));
  const config = {
    flow: "online",
    rounds: 1,
    prompts_per_round: prompts,
    samples_per_prompt: 2,
    algorithm: "grpo",
    model: { path: "model" },
    data: { train: "rows.jsonl" },
    reward: ["exact_match"],
    sampler: { tokens_max: tokens },
  };
  await Deno.writeTextFile(`${dir}/run.yaml`, JSON.stringify(config));
  return `${dir}/run.yaml`;
}

Deno.test("run and plan ask about sizes that are hardly meant, and about no others", async () => {
  const dir = await freshHome();
  const [silly, meant] = [{ tokens: 4096, prompts: 8 }, { tokens: 32, prompts: ROWS }];
  const questions = [
    "sampler.tokens_max is 4096, but the model's context has room for 64 tokens, including the " +
    "prompt: " +
    "every completion ends there. Fix: lower sampler.tokens_max",
    "prompts_per_round is 8, but there are 3 rows to train on: a round has every row 2.7 times. " +
    "Fix: lower prompts_per_round, or add rows",
  ];
  for (const [sizes, expected] of [[silly, questions], [meant, []]] as const) {
    const config = await written(dir, sizes);
    const starting = (text: string, word: string) =>
      text.split("\n").filter((line) => line.startsWith(word)).map((line) =>
        line.slice(word.length)
      );
    const plan = await rl(["plan", config]);
    deepStrictEqual([plan.code, starting(plan.out, "question   ")], [0, expected], plan.err);
    deepStrictEqual((await json(["plan", config])).questions, expected);
    const run = await rl(["run", config, "--detach", "--home", `${dir}/home`]); // It stops nothing.
    deepStrictEqual(starting(run.err, "Is this intended? "), expected);
    strictEqual(run.code, 0, run.err);
  }
});
