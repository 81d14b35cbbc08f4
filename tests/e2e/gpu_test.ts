/**
 * The whole on a GPU, where there is one: each trainer engine in bfloat16 beside a sampler on the
 * same GPU. Another sampler engine is named by HOLDFAST_TEST_SAMPLER.
 */
import { strictEqual } from "node:assert/strict";
import { hasGpu } from "../../workers/mod.ts";
import { rl } from "../crash/runs.ts";
import { checkKilledAndResumed, RUN, type Setting } from "./gsm8k_run.ts";
import { realInput } from "./smollm2.ts";

const input = hasGpu() ? await realInput() : null;
if (input === null) {
  console.log(
    "tests/e2e/gpu_test.ts is skipped: no GPU, or no SmolLM2 and GSM8K at HOLDFAST_SHARED or ../shared",
  );
}
const sampler = Deno.env.get("HOLDFAST_TEST_SAMPLER") ?? "huggingface";

const TRAINERS: Omit<Setting["numerics"], "world_size" | "dtype">[] = [
  { engine: "torch", zero: 0 },
  { engine: "deepspeed", zero: 2 },
  { engine: "deepspeed", zero: 3 },
];

for (const { engine, zero } of TRAINERS) {
  Deno.test({
    ignore: input === null,
    name:
      `SmolLM2 on a GPU with ${engine}, ZeRO ${zero}, and ${sampler}: killed in round 2 and resumed, nothing finished is made again`,
    async fn() {
      const home = await Deno.makeTempDir({ prefix: "holdfast-gpu-" });
      try {
        const overrides = [
          `trainer.engine=${engine}`,
          `trainer.zero=${zero}`,
          "trainer.ranks=1",
          "trainer.device=cuda",
          `sampler.engine=${sampler}`,
          "sampler.device=cuda",
        ];
        const numerics = { engine, zero, world_size: 1, dtype: "bfloat16" };
        await checkKilledAndResumed(home, { input: input!, overrides, numerics });
        const { code, output } = await rl(["verify", RUN, "--home", home], {});
        strictEqual(code, 0, output);
      } finally {
        await Deno.remove(home, { recursive: true });
      }
    },
  });
}
