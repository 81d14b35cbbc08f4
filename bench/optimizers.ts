/** State and time of every optimizer's step, beside torch's AdamW in the same run. */
import { Optimizer } from "../data/mod.ts";
import { pythonAnswer } from "./logits.ts";
import { numberFlags, quickstartPython, rounded } from "./quickstart_run.ts";

type Measurement = { weights: number; state_mib: number; seconds: number };

const NAMES = Optimizer.shape.name.unwrap().options;

/** `args`: `--width N --layers N --vocabulary N --repeats N`. */
export async function benchOptimizers(args: readonly string[]): Promise<Record<string, number>> {
  const sizes = numberFlags(args, { width: 256, layers: 2, vocabulary: 1000, repeats: 5 });
  const python = await quickstartPython();
  const measurements: Record<string, Measurement> = {};
  for (const name of NAMES) {
    measurements[name] = await pythonAnswer<Measurement>(python, "optimizer_step.py", {
      name,
      ...sizes,
    });
  }
  const { adamw: peer } = measurements as Record<(typeof NAMES)[number], Measurement>;
  return {
    ...sizes,
    weights: peer.weights,
    ...Object.fromEntries(
      Object.entries(measurements).flatMap(([name, { state_mib, seconds }]) => [
        [`${name}_state_mib`, rounded(state_mib)],
        [`${name}_state_ratio`, rounded(state_mib / peer.state_mib)],
        [`${name}_step_ms`, rounded(seconds * 1000)],
      ]),
    ),
  };
}
