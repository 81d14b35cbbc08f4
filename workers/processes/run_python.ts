import { guardedProcess } from "./guarded_process.ts";
import { PYTHON_ROOT } from "./local_launcher.ts";
import { workerEnvironment } from "./worker_environment.ts";

type PythonOutput = { code: number; stdout: string; stderr: string };

/**
 * Runs a module of our Python package to its end as a {@linkcode guardedProcess}, with `input` on
 * its standard input. Rejects with the signal's reason if the signal ended it.
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
  const { stdout, stderr, code } = guardedProcess([python, "-m", module, ...args], {
    env: { ...workerEnvironment({ hub_token }), PYTHONPATH: PYTHON_ROOT, OMP_NUM_THREADS: "1" },
    clear_env: true,
    input,
    signal,
  });
  const [ended, ...texts] = await Promise.all([
    code,
    new Response(stdout).text(),
    new Response(stderr).text(),
  ]);
  return { code: ended, stdout: texts[0], stderr: texts[1] };
}
