import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { questionsOf } from "../../../runs/checks/questions.ts";
import { onlineConfig, rowsOf, scratch } from "../../flows/fixtures.ts";

async function modelOf(config: unknown): Promise<string> {
  const dir = await scratch();
  await Deno.writeTextFile(
    `${dir}/config.json`,
    typeof config === "string" ? config : JSON.stringify(config),
  );
  return dir;
}

Deno.test("questionsOf() asks about tokens_max beyond the context", async () => {
  const model = await modelOf({ max_position_embeddings: 512 });
  const questions = (sampler: Record<string, unknown>, dir = model) =>
    questionsOf(onlineConfig(dir, { sampler }), {});
  deepStrictEqual(questions({ tokens_max: 511 }), []);
  match(
    questions({ tokens_max: 512 })[0]!,
    /^sampler\.tokens_max is 512, but the model's context has room for 512 tokens/,
  );
  match(
    questions({ tokens_max: 300, max_model_len: 256 })[0]!,
    /sampler\.max_model_len has room for 256/,
  );
  match(questions({ tokens_max: 600, max_model_len: 1024 })[0]!, /room for 512/);
  const nested = await modelOf({ text_config: { max_position_embeddings: 64 } });
  strictEqual(questions({ tokens_max: 64 }, nested).length, 1);
  for (
    const unknown of ["", "{}", "[]", "{", "null", "3", '{"text_config":null}', '{"text_config":3}']
  ) {
    deepStrictEqual(questions({ tokens_max: 1e9 }, await modelOf(unknown)), []);
  }
});

Deno.test("questionsOf() asks about the sampler only if the run samples", async () => {
  const path = await modelOf({ max_position_embeddings: 512 });
  const config = (rest: object) => ({
    flow: "supervised",
    model: { path },
    sampler: { tokens_max: 600, max_model_len: null },
    reward: [],
    evaluate: null,
    ...rest,
  });
  const questions = (rest: object) => questionsOf(config(rest) as never, {}).length;
  const [name, sets] = ["exact_match", [{ reward: null }]];
  deepStrictEqual([
    questions({}),
    questions({ evaluate: { sets } }),
    questions({ reward: [{ name }] }),
  ], [
    0,
    0,
    0,
  ]);
  deepStrictEqual([
    questions({ reward: [{ name }], evaluate: { sets } }),
    questions({ evaluate: { sets: [{ reward: [{ name }] }] } }),
  ], [1, 1]);
});

Deno.test("questionsOf() asks about a round of more rows than there are", () => {
  const questions = (size: number) =>
    questionsOf(onlineConfig("/none", { prompts_per_round: 8 }), { train: rowsOf(size) });
  deepStrictEqual(questions(8), []);
  match(
    questions(4)[0]!,
    /^prompts_per_round is 8, but there are 4 rows to train on: a round has every row 2\.0 times/,
  );
  const warm = { warmup: { rows_per_round: 9 }, online: { prompts_per_round: 9 } };
  strictEqual(questionsOf(warm as never, { train: rowsOf(4) }).length, 2);
});

for (
  const [dtype, fast] of [
    ["bfloat16", [" avx2 avx512_bf16 x", " amx_bf16", " fphp bf16 i8mm"]],
    ["float16", [" avx2 avx512_fp16", " amx_fp16 x", " fphp asimdhp bf16"]],
  ] as const
) {
  Deno.test(`questionsOf() asks about ${dtype} on a CPU that has no instructions for it`, () => {
    const questions = (cpuFlags: string | null, device: "cpu" | "cuda" = "cpu") => {
      const blocks = {
        trainer: { dtype, device },
        sampler: { tokens_max: 1, dtype, device },
      };
      return questionsOf(blocks as never, {}, { cpuFlags: () => cpuFlags, isRoot: () => false });
    };
    strictEqual(questions(" fpu avx2 avx512_bf16vl avx512bw").length, 2);
    match(
      questions(" fpu avx2")[0]!,
      new RegExp(`^trainer\\.dtype is ${dtype}.*Fix: trainer\\.dtype=float32$`),
    );
    for (const known of fast) deepStrictEqual(questions(known), []);
    deepStrictEqual(questions(null), []);
    deepStrictEqual(questions(" avx2", "cuda"), []);
  });
}

Deno.test("questionsOf() does not ask about float32", () => {
  const plain = { trainer: { dtype: "float32", device: "cpu" } };
  const machine = { cpuFlags: () => " avx2", isRoot: () => false };
  deepStrictEqual(questionsOf(plain as never, {}, machine), []);
});

Deno.test("questionsOf() asks about a reward that sees every process of root's machine", () => {
  const free = { name: "python", source: "free.py:f", isolate: false };
  const graded = { ...free, source: "graded.py:f" }; // By an evaluation alone.
  const bound = { name: "python", source: "bound.py:f" };
  const questions = (root: boolean) =>
    questionsOf(
      { reward: [free, bound], evaluate: { sets: [{ reward: [free, graded] }, {}] } } as never,
      {},
      { cpuFlags: () => null, isRoot: () => root },
    );
  deepStrictEqual(questions(false), []);
  const why = " has isolate: false and runs as root: it can end";
  deepStrictEqual(questions(true).map((text) => text.slice(0, text.indexOf(why))), [
    "reward free.py:f",
    "reward graded.py:f",
  ]);
});
