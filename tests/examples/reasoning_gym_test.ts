/**
 * The recipes of `examples/reasoning_gym` on a few rows like those that `make_rows.py` writes: a
 * model that is created, supervised training on a mixture, and GRPO on it with a curriculum, by
 * real workers, killed once.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { at, rl, show, type Shown, withFreshHome } from "../crash/runs.ts";

const RECIPES = fileURLToPath(new URL("../../examples/reasoning_gym", import.meta.url));
const ROWS: Record<string, [prompt: string, answer: string][]> = {
  chain_sum: [["State the final answer to the following arithmetic problem: 2 + 3 =\n", "5"]],
  spell_backward: [["Spell this word backward (example: sun -> nus): cat\n", "tac"]],
  gcd: [["Find the Greatest Common Divisor (GCD) of these numbers: 6, 4.\n", "2"]],
};
type Mixed = { name: string; drawn: number };
const FAMILIES = Object.keys(ROWS);

async function writeRows(dir: string): Promise<void> {
  for (const [family, rows] of Object.entries(ROWS)) {
    for (const split of ["train", "eval"]) {
      const lines = rows.map(([prompt, answer], place) =>
        JSON.stringify({ id: `${split}/${place}`, prompt, answer, completion: answer })
      );
      await Deno.writeTextFile(`${dir}/${family}.${split}.jsonl`, `${lines.join("\n")}\n`);
    }
  }
}

const paths = (dir: string, list: string, split: string) =>
  FAMILIES.map((family, i) =>
    `${list}.${i}.${list === "data.train" ? "path" : "data"}=${dir}/${family}.${split}.jsonl`
  );

Deno.test("the reasoning_gym recipes train on a mixture with a curriculum, and resume", async () => {
  await withFreshHome(async (home) => {
    const place = at({ home, store: null });
    await writeRows(home);
    const train = paths(home, "data.train", "train");
    const warm = ["rounds=2", "rows_per_round=6", ...train];
    const taught = await rl(["run", `${RECIPES}/sft.yaml`, "--id", "warm", ...warm, ...place], {});
    strictEqual(taught.code, 0, taught.output);
    const options = [
      ...["rounds=2", "prompts_per_round=6", "samples_per_prompt=2", "evaluate.every_rounds=1"],
      ...["checkpoints.every_rounds=1", `model.path=${home}/runs/warm/final`],
      ...train,
      ...paths(home, "evaluate.sets", "eval"),
    ];
    const run = ["run", `${RECIPES}/grpo.yaml`, "--id", "learned", ...options, ...place];
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
