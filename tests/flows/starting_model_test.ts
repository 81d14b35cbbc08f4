import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { SupervisedConfig } from "../../configs/mod.ts";
import { createModel } from "../../flows/mod.ts";
import { supervised } from "../../flows/supervised.ts";

const CONFIG = {
  flow: "supervised",
  rounds: 1,
  rows_per_round: 1,
  data: { train: [{ path: "none" }] },
};

function stagesOf(model: Record<string, unknown>): string[] {
  const config = SupervisedConfig.parse({ ...CONFIG, model });
  return supervised.build(config).nodes.flatMap((node) =>
    node.kind === "stage" ? [node.stage.name] : []
  );
}

Deno.test("startingModel() reads a path, and creates a recipe's model first", () => {
  const read = stagesOf({ path: "model" });
  strictEqual(read.includes(createModel.name), false);
  deepStrictEqual(stagesOf({ recipe: "tiny_qwen", seed: 1 }), [createModel.name, ...read]);
});
