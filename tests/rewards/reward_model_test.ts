import { deepStrictEqual, throws } from "node:assert/strict";
import { RewardConfig, scoringFunctions } from "../../rewards/mod.ts";

Deno.test("scoringFunctions() gives a reward model's settings to the reward worker", () => {
  const entry = RewardConfig.parse({
    name: "reward_model",
    path: "/rm",
    weight: 2,
    label: "judge",
  });
  const [judge] = scoringFunctions([entry]);
  deepStrictEqual([judge!.name, judge!.weight, judge!.runs_on, judge!.source], [
    "judge",
    2,
    "process",
    null,
  ]);
  const settings = {
    path: "/rm",
    dtype: "float32",
    device: "cpu",
    threads: 1,
    batch_tokens_max: 8192,
  };
  deepStrictEqual(judge!.model, { ...settings, template_arguments: {}, turn_end: "template" });
  throws(() => RewardConfig.parse({ name: "reward_model" }), /path/);
});
