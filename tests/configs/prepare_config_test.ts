import { deepStrictEqual, match } from "node:assert/strict";
import { parseConfig, type PrepareConfig } from "../../configs/mod.ts";
import { PREPARE_RULES } from "../../configs/prepare_config.ts";

const BASE = "flow: prepare\noutput: out\n";
const parsed = async (text: string, overrides: string[] = []) => {
  const options = { file: "/dir/p.yaml", files_missing: true, overrides, cwd: "/here" };
  return (await parseConfig(BASE + text, options)).config as PrepareConfig;
};
const problem = async (text: string) =>
  await parsed(text).then(() => "", (error) => (error as Error).message);

Deno.test("a preparation has short forms, defaults, and absolute paths", async () => {
  const { output, inputs, needs, deduplicate, splits, decontaminate } = await parsed(
    "inputs: a.jsonl\ndecontaminate: { sets: [held.jsonl] }\n",
    ["inputs.0.name=n"],
  );
  deepStrictEqual([output, needs, deduplicate, splits], ["/dir/out", "prompt", "row", {
    train: 1,
  }]);
  deepStrictEqual(inputs.map(({ path, name, keep }) => [path, name, keep]), [
    ["/dir/a.jsonl", "n", {}],
  ]);
  deepStrictEqual(decontaminate, {
    ngram_words: 13,
    sets: [{ path: "/dir/held.jsonl", fields: {} }],
  });
});

Deno.test("limits in tokens need a tokenizer, and a minimum at most its maximum", async () => {
  const inputs = "inputs: a.jsonl\n";
  const tokens = await problem(`${inputs}lengths: { prompt_tokens_max: 3 }\n`);
  match(tokens, /p\.yaml:4:31 lengths\.prompt_tokens_max: needs a tokenizer to count tokens with/);
  const order = "lengths: { prompt_characters_min: 3, prompt_characters_max: 2 }\n";
  match(await problem(inputs + order), /prompt_characters_min: is 3, more than its maximum 2/);
  const lengths = (await parsed(inputs)).lengths;
  deepStrictEqual(PREPARE_RULES.flatMap((rule) => rule({ lengths, tokenizer: null })), []);
});

Deno.test("splits have names that are files, and positive weights", async () => {
  const inputs = "inputs: a.jsonl\n";
  match(await problem(`${inputs}splits: { ../train: 1 }\n`), /must be letters, digits, _ or -/);
  match(await problem(`${inputs}splits: { train: 0 }\n`), /splits\.train/);
  match(await problem(`${inputs}splits: {}\n`), /name at least one split/);
  match(await problem("inputs: []\n"), /inputs/);
  const keep = "inputs: [{ path: a.jsonl, keep: { prompt: x } }]\n";
  match(await problem(keep), /'prompt' is a column of every prepared row/);
});
