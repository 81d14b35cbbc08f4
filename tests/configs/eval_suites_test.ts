/** The suites of `configs/eval`. */
import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { type EvaluateConfig, loadConfig } from "../../configs/mod.ts";
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
