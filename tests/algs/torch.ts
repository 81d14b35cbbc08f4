import type { Expression } from "../../data/mod.ts";
import type { EvaluatedStep } from "../../algs/mod.ts";

/** Rows of every micro-batch of every rank; -1 is a filler. */
export type Cut = number[][][];

/** One expression on one step under several cuts, computed by the worker's interpreter in float64. */
export type TorchCase = { expression: Expression; step: EvaluatedStep; cuts: Cut[]; old_is_current?: boolean };

/** Gradients by live input, per sequence: [T], or [1] of a sequence input. */
export type TorchOutcome = {
  loss: number;
  metrics: Record<string, number>;
  gradients: Record<string, number[][]>;
};

/** Runs the cases in one Python process; the outcomes of each case are in the order of its cuts. */
export async function runTorch(cases: readonly TorchCase[]): Promise<TorchOutcome[][]> {
  const python = Deno.env.get("HOLDFAST_TEST_PYTHON");
  if (!python) {
    throw new Error(
      "Cannot compare with torch as HOLDFAST_TEST_PYTHON is not set: set it to a Python that has torch and numpy",
    );
  }
  const path = (relative: string) => new URL(relative, import.meta.url).pathname;
  const child = new Deno.Command(python, {
    args: [path("torch_driver.py")],
    env: {
      PYTHONPATH: `${path("../../workers/python")}:${path("../python")}`,
      OMP_NUM_THREADS: "1",
      PYTHONDONTWRITEBYTECODE: "1",
    },
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const [output] = await Promise.all([child.output(), send(child.stdin, JSON.stringify(cases))]);
  if (!output.success) throw new Error(`Cannot compare with torch as the driver ended with code ${output.code}`);
  return JSON.parse(new TextDecoder().decode(output.stdout));
}

async function send(stdin: WritableStream<Uint8Array>, text: string): Promise<void> {
  const writer = stdin.getWriter();
  await writer.write(new TextEncoder().encode(text));
  await writer.close();
}
