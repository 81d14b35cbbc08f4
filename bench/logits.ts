/**
 * Memory of a training step's logits: in chunks, and all at once in the same run. Each case is a
 * separate process, whose peak is read from its own counter.
 */
import { numberFlags, quickstartPython, ROOT, rounded } from "./quickstart_run.ts";

type Measurement = { step_mib: number; seconds: number; grad_norm: number };

/** `args`: `--tokens N --vocabulary N --chunk N --hidden N --repeats N`. */
export async function benchLogits(args: readonly string[]): Promise<Record<string, number | null>> {
  const usual = { tokens: 2048, vocabulary: 50_000, hidden: 128, chunk: 256, repeats: 3 };
  const { chunk, ...sizes } = numberFlags(args, usual);
  const python = await quickstartPython();
  const measure = async (chunk_tokens: number | null, entropy: boolean) =>
    await pythonAnswer<Measurement>(python, "logits_memory.py", {
      ...sizes,
      chunk_tokens,
      entropy,
    });
  const [chunked, whole] = [await measure(chunk, false), await measure(null, false)];
  const [chunkedEntropy, wholeEntropy] = [await measure(chunk, true), await measure(null, true)];
  return {
    ...sizes,
    chunk,
    full_logits_mib: rounded(sizes.tokens * sizes.vocabulary * 4 / (1 << 20)),
    step_mib: rounded(chunked.step_mib),
    peer_step_mib: rounded(whole.step_mib),
    ratio: rounded(chunked.step_mib / whole.step_mib),
    step_s: rounded(chunked.seconds),
    peer_step_s: rounded(whole.seconds),
    entropy_step_mib: rounded(chunkedEntropy.step_mib),
    entropy_peer_step_mib: rounded(wholeEntropy.step_mib),
    grad_norm_difference: Math.abs(chunked.grad_norm - whole.grad_norm) / whole.grad_norm,
  };
}

/** The JSON line that one of `peers/` ends with. @throws {Error} With what it said, if it fails. */
export async function pythonAnswer<T>(python: string, script: string, work: unknown): Promise<T> {
  const env = {
    PYTHONPATH: `${ROOT}workers/python`,
    OMP_NUM_THREADS: "1",
    HF_HUB_DISABLE_PROGRESS_BARS: "1",
  };
  const args = [`${ROOT}bench/peers/${script}`, JSON.stringify(work)];
  const command = new Deno.Command(python, {
    args,
    env,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
  const { code, stdout, stderr } = await command.output();
  const text = new TextDecoder();
  if (code !== 0) {
    throw new Error(`Cannot measure because ${script} ended with ${code}:\n${text.decode(stderr)}`);
  }
  return JSON.parse(text.decode(stdout).trim().split("\n").at(-1)!) as T;
}
