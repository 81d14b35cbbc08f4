import { fileURLToPath } from "node:url";
import { ensureEnvironment, type EnvironmentKind } from "../workers/mod.ts";

/** The repository's own home: its environments serve every test. */
export const HOME = fileURLToPath(new URL("../.holdfast", import.meta.url));

/** Python environments that tests use, and the variable that names each one's interpreter. */
const VARIABLES: Record<string, EnvironmentKind> = {
  HOLDFAST_TEST_PYTHON: "torch",
  HOLDFAST_TEST_DEEPSPEED_PYTHON: "deepspeed",
  HOLDFAST_TEST_VLLM_PYTHON: "vllm_cpu",
};

/** Makes what is missing, saying so, and returns the variables. A variable that is set already is left as it is. */
export async function ensureTestEnvironments(): Promise<Record<string, string>> {
  const env: Record<string, string> = {};
  for (const [name, kind] of Object.entries(VARIABLES)) {
    let said = "";
    const onProgress = ({ step }: { step: string }) => {
      if (step !== said) console.log(`environment ${kind}: ${step}`);
      said = step;
    };
    env[name] = Deno.env.get(name) ?? await ensureEnvironment(kind, { home: HOME, onProgress });
  }
  return env;
}
