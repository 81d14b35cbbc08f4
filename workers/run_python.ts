import { PYTHON_ROOT } from "./local_launcher.ts";
import { workerEnvironment } from "./worker_environment.ts";

type PythonOutput = { code: number; stdout: string; stderr: string };

/**
 * Runs a module of our Python package to its end, with `input` on its standard input. Rejects with
 * the signal's reason if the signal ended it.
 */
export async function runPython(
  python: string,
  options: {
    module: string;
    args?: string[];
    input: string;
    hub_token?: boolean;
    signal?: AbortSignal;
  },
): Promise<PythonOutput> {
  const { module, args = [], input, hub_token, signal } = options;
  const child = new Deno.Command(python, {
    args: ["-m", module, ...args],
    clearEnv: true,
    env: { ...workerEnvironment({ hub_token }), PYTHONPATH: PYTHON_ROOT, OMP_NUM_THREADS: "1" },
    signal,
    stdin: "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const fed = feed(child.stdin, input);
  const { code, stdout, stderr } = await child.output();
  await fed;
  if (code !== 0) signal?.throwIfAborted(); // The signal ended it.
  const text = new TextDecoder();
  return { code, stdout: text.decode(stdout), stderr: text.decode(stderr) };
}

/** A process that ends without reading reports why itself. */
async function feed(stdin: WritableStream<Uint8Array>, input: string): Promise<void> {
  const writer = stdin.getWriter();
  try {
    await writer.write(new TextEncoder().encode(input));
    await writer.close();
  } catch (error) {
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
  }
}
