import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import {
  AlgorithmChoice,
  expressionsOf,
  expressionText,
  torchModule,
} from "../../../../algs/mod.ts";
import { json, rl } from "../../fixtures.ts";

const CHOICE = AlgorithmChoice.parse({ name: "grpo", kl_coef: 0.04 });

Deno.test("loss show prints an algorithm's loss with the settings that it was given", async () => {
  const { code, out } = await rl(["loss", "show", "grpo", "algorithm.kl_coef=0.04"]);
  strictEqual(code, 0);
  strictEqual(out, `// ${JSON.stringify(CHOICE)}\n${expressionText(expressionsOf(CHOICE).loss)}`);
  const shown = await json(["loss", "show", "grpo", "kl_coef=0.04"]);
  deepStrictEqual(shown, { algorithm: CHOICE, expression: expressionsOf(CHOICE).loss });
});

Deno.test("loss show --torch prints a Python module, --value the value loss", async () => {
  const { out } = await rl(["loss", "show", "grpo", "kl_coef=0.04", "--torch"]);
  strictEqual(
    out,
    `# ${JSON.stringify(CHOICE)}\n${torchModule(expressionsOf(CHOICE).loss, { title: "grpo" })}`,
  );
  match((await rl(["loss", "show", "ppo", "--value"])).out, /\nreads values \/\/ token, live\n/);
});

Deno.test("loss show says what mask_truncated leaves out of which loss", async () => {
  const lines = async (...args: string[]) =>
    (await rl(["loss", "show", "ppo", "mask_truncated=true", ...args])).out.split("\n");
  match(
    (await lines("--torch"))[1]!,
    /^# mask_truncated: completions cut by the token limit are left out of this step/,
  );
  match(
    (await lines("--value"))[1]!,
    /^\/\/ mask_truncated: the value model also learns from completions cut by the token limit$/,
  );
});

Deno.test("loss show fills in a profile and refuses what the schema refuses", async () => {
  const { algorithm } = await json<{ algorithm: Record<string, unknown> }>(
    ["loss", "show", "grpo", "profile=trl", "importance=none"],
  );
  deepStrictEqual([algorithm.std_epsilon, algorithm.importance], [1e-4, "none"]);
  for (
    const [args, message] of [
      [["grpo", "kl_estimator=k1"], /k1 in the loss/],
      [
        ["grpo", "kl_coef=0.1", "kl_in=reward", "kl_estimator=k1"],
        /kl_in: puts the KL under the group's standard/,
      ],
      [["gspp"], /there is no such algorithm \(did you mean gspo\?\)/],
      [["grpo", "clip"], /PATH=VALUE/],
      [["grpo", "--value"], /value loss of 'grpo' because it has none/],
    ] as const
  ) {
    const { code, err } = await rl(["loss", "show", ...args]);
    strictEqual(code, 2);
    match(err, message);
  }
});
