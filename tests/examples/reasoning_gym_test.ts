/**
 * The recipes of `examples/reasoning_gym` with the rows of the real generator: a model that is
 * created, supervised training on a mixture, and GRPO on it with a curriculum, killed once.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { ensureRequirements } from "../../workers/mod.ts";
import { at, rl, show, type Shown, withFreshHome } from "../crash/runs.ts";
import { runPython } from "../e2e/smollm2.ts";

const EXAMPLE = new URL("../../examples/reasoning_gym/", import.meta.url);
const RECIPES = fileURLToPath(EXAMPLE);
const FAMILIES = ["chain_sum", "spell_backward", "gcd"];

type Row = { id: string; prompt: string; answer: string; completion: string };
type Mixed = { name: string; drawn: number };

async function rowsOf(dir: string, family: string, split: string): Promise<Row[]> {
  const text = await Deno.readTextFile(`${dir}/${family}.${split}.jsonl`);
  return text.trimEnd().split("\n").map((line) => JSON.parse(line) as Row);
}

/** A question without the order of its numbers. */
function unordered({ prompt }: Row): string {
  const numbers = prompt.replaceAll(/([+-]) /g, "$1").match(/[+-]?\d+/g) ?? [prompt];
  return numbers.map((number) => number.replace("+", "")).sort().join(" ");
}

const paths = (dir: string, list: string, { field, split }: { field: string; split: string }) =>
  FAMILIES.map((family, i) => `${list}.${i}.${field}=${dir}/${family}.${split}.jsonl`);

Deno.test("the reasoning_gym recipes train on a mixture with a curriculum, and resume", async () => {
  const python = await ensureRequirements(new URL("requirements.txt", EXAMPLE), {
    onProgress: ({ text }) => console.log(text),
  });
  await withFreshHome(async (home) => {
    const [first, second] = [`${home}/rows`, `${home}/again`];
    for (const dir of [first, second]) await runPython(python, [`${RECIPES}make_rows.py`, dir], {});
    for (const family of FAMILIES) {
      const [train, held] = [
        await rowsOf(first, family, "train"),
        await rowsOf(first, family, "eval"),
      ];
      deepStrictEqual(await rowsOf(second, family, "train"), train);
      strictEqual(held.length, 256);
      const trained = new Set(train.map(unordered));
      deepStrictEqual(held.filter((row) => trained.has(unordered(row))), []);
      strictEqual(new Set(held.map(unordered)).size, 256);
    }

    const place = at({ home, store: null });
    const train = paths(first, "data.train", { field: "path", split: "train" });
    const few = ["rounds=2", "rows_per_round=6", ...train];
    const taught = await rl(["run", `${RECIPES}sft.yaml`, "--id", "taught", ...few, ...place], {});
    strictEqual(taught.code, 0, taught.output);
    const options = [
      "rounds=2",
      "prompts_per_round=6",
      "samples_per_prompt=2",
      "checkpoints.every_rounds=1",
      "evaluate.every_rounds=1",
      "evaluate.problems=4",
      `model.path=${home}/runs/taught/final`,
      ...train,
      ...paths(first, "evaluate.sets", { field: "data", split: "eval" }),
    ];
    const run = ["run", `${RECIPES}grpo.yaml`, "--id", "learned", ...options, ...place];
    const killed = await rl(run, { HOLDFAST_FAULT: "kill:engine@frame:60" });
    strictEqual(killed.code, 137, killed.output);
    const resumed = await rl(["resume", "learned", ...place], {});
    strictEqual(resumed.code, 0, resumed.output);
    const shown = await show(home, "learned") as Shown & { mixture: Mixed[] };
    const { status, mixture, evaluations } = shown;
    strictEqual(status, "done");
    deepStrictEqual(mixture.map(({ name }) => name), FAMILIES);
    strictEqual(mixture.reduce((sum, { drawn }) => sum + drawn, 0), 12);
    ok(evaluations.length >= 3 * 3, `${evaluations.length} evaluations`);
  });
});
