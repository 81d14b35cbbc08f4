/**
 * Supervised steps, alternately on packed and on padded rows in the same process: trained tokens
 * per second.
 */
import { expressionsOf } from "../algs/mod.ts";
import { Optimizer } from "../data/mod.ts";
import { TrainerConfig, trainerGroup } from "../workers/mod.ts";
import { pythonAnswer } from "./logits.ts";
import { numberFlags, quickstartPython, rounded } from "./quickstart_run.ts";

type Measurement = {
  trained_tokens: number;
  packed_s: number;
  padded_s: number;
  packed_micro_batches: number;
  padded_micro_batches: number;
};

/** `args`: `--rows N --tokens N --repeats N`; `tokens` is trainer.micro_batch_tokens_max. */
export async function benchPacking(
  args: readonly string[],
): Promise<Record<string, number | null>> {
  const { rows, tokens: tokens_max, repeats } = numberFlags(args, {
    rows: 64,
    tokens: 8192,
    repeats: 7,
  });
  const python = await quickstartPython();
  const optimizer = Optimizer.parse({ lr: 1e-4 });
  const { spec } = trainerGroup(TrainerConfig.parse({ device: "cpu" }), { seed: 1 });
  const dir = await Deno.makeTempDir({ prefix: "holdfast_bench_" });
  try {
    const places = { model: `${dir}/model`, artifacts: `${dir}/artifacts` };
    const { loss } = expressionsOf({ name: "sft" });
    const work = { rows, tokens_max, repeats, loss, optimizer, spec, ...places };
    const measurement = await pythonAnswer<Measurement>(python, "supervised_rows.py", work);
    return {
      rows,
      micro_batch_tokens_max: tokens_max,
      repeats,
      trained_tokens: measurement.trained_tokens,
      micro_batches: measurement.packed_micro_batches,
      peer_micro_batches: measurement.padded_micro_batches,
      tokens_per_s: rounded(measurement.trained_tokens / measurement.packed_s),
      peer_tokens_per_s: rounded(measurement.trained_tokens / measurement.padded_s),
      ratio: rounded(measurement.padded_s / measurement.packed_s),
    };
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}
