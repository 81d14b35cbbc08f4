import { deepStrictEqual } from "node:assert/strict";
import { loadConfig } from "../../configs/mod.ts";
import { buildFlow } from "../../flows/mod.ts";
import { online } from "../../flows/online.ts";
import { execute, onlineConfig, stores } from "./fixtures.ts";

Deno.test("a run with a moving average exports it beside the last policy", async () => {
  const home = await stores();
  const config = onlineConfig(home.model, { trainer: { optimizer: { lr: 0.1 }, ema_decay: 0.9 } });
  const { outcome, trainer } = await execute(online, config, home);
  deepStrictEqual(outcome.status, "done", JSON.stringify(outcome));
  const exports = trainer.calls.filter(({ op }) => op === "publish").map(({ args }) => {
    const { dir, average } = args as { dir: string; average: boolean };
    return [dir.split("/").at(-1), average];
  });
  deepStrictEqual(exports.slice(-2), [["final", false], ["final_ema", true]]);
  deepStrictEqual(exports.filter(([, average]) => average).length, 1);
});

const CONFIGS = ["gsm8k_grpo", "sft", "quickstart_small", "algorithms/dpo"];
for (const name of CONFIGS) {
  Deno.test(`${name}.yaml ends with the models that it has`, async () => {
    for (const decay of ["0.999", "null"]) {
      const { config } = await loadConfig(`configs/${name}.yaml`, {
        overrides: [`trainer.ema_decay=${decay}`],
        files_missing: true,
      });
      const last = buildFlow(config).nodes.map(({ name }) => name).filter((name) =>
        name.startsWith("export_") && name !== "export_warm"
      );
      const expected = decay === "null" ? ["export_policy"] : ["export_policy", "export_average"];
      deepStrictEqual(last, expected);
    }
  });
}
