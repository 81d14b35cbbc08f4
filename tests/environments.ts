import { fileURLToPath } from "node:url";
import {
  ensureEnvironment,
  ensureRequirements,
  type EnvironmentKind,
  environmentKind,
  type EnvironmentProgress,
  findPython,
} from "../workers/mod.ts";

/** The repository's own home. */
export const HOME = fileURLToPath(new URL("../.holdfast", import.meta.url));

/** Python environments that tests use, and the variable that names each one's interpreter. */
const WORKERS: Record<string, EnvironmentKind> = {
  HOLDFAST_TEST_PYTHON: environmentKind("torch"),
  HOLDFAST_TEST_DEEPSPEED_PYTHON: environmentKind("deepspeed"),
  HOLDFAST_TEST_VLLM_PYTHON: "vllm_cpu",
  HOLDFAST_TEST_TRACKERS_PYTHON: "trackers",
  HOLDFAST_TEST_HUB_PYTHON: "hub",
};

const TRL = new URL("./requirements/trl.txt", import.meta.url);

/**
 * Makes what is missing, saying so, and returns the variables. A variable that is set already is
 * left as it is.
 */
export async function ensureTestEnvironments(): Promise<Record<string, string>> {
  // Not a version manager's script, which takes longer to start than the Python that it finds.
  const HOLDFAST_PYTHON = (await findPython()).path;
  const env: Record<string, string> = { HOLDFAST_TEST_DENO: Deno.execPath(), HOLDFAST_PYTHON };
  for (const [name, kind] of Object.entries(WORKERS)) {
    env[name] = Deno.env.get(name) ??
      await ensureEnvironment(kind, { onProgress: say });
  }
  return env;
}

/**
 * The interpreter of TRL, the peer that losses and speed are compared with: no worker runs in it,
 * and only tests that compare make it.
 */
export async function ensureTrl(): Promise<string> {
  return Deno.env.get("HOLDFAST_TEST_TRL_PYTHON") ??
    await ensureRequirements(TRL, { onProgress: say });
}

function say({ text }: EnvironmentProgress): void {
  console.log(text);
}
