/**
 * The whole on CPU: DeepSpeed ZeRO-2 on two ranks, and vLLM. In float32: on a CPU without bfloat16
 * instructions this test took 40 minutes.
 */
import { checkKilledAndResumed } from "./gsm8k_run.ts";
import { testOnRealInput } from "./smollm2.ts";

await testOnRealInput(
  "SmolLM2 learns from GSM8K on DeepSpeed ZeRO-2 and vLLM, is killed in round 2 and resumed, and nothing finished is made again",
  async (input) => {
    const home = await Deno.makeTempDir({ prefix: "holdfast-gsm8k-" });
    try {
      await checkKilledAndResumed(home, {
        input,
        overrides: [
          "trainer.device=cpu",
          "trainer.dtype=float32",
          "sampler.device=cpu",
          "sampler.dtype=float32",
          "sampler.threads=2",
        ],
        numerics: { engine: "deepspeed", zero: 2, world_size: 2, dtype: "float32" },
      });
    } finally {
      await Deno.remove(home, { recursive: true });
    }
  },
);
