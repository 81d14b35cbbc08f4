import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensureTrl, HOME } from "../environments.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** A real model and real problems for tests, from the folder beside the repository. */
export type RealInput = { tool: string; train: string; test: string };

/**
 * Where HOLDFAST_SHARED, else `../shared`, has SmolLM2 and GSM8K; null if there is no such folder.
 */
export async function realInput(): Promise<RealInput | null> {
  const shared = Deno.env.get("HOLDFAST_SHARED") ?? join(ROOT, "../shared");
  const input = {
    tool: join(shared, "tools/make_smollm2.py"),
    train: join(shared, "data/gsm8k/train.jsonl"),
    test: join(shared, "data/gsm8k/test.jsonl"),
  };
  for (const path of Object.values(input)) if (!await isThere(path)) return null;
  return input;
}

/** Declares a test on real input. Where there is none it is skipped, and fails in CI. */
export async function testOnRealInput(
  name: string,
  fn: (input: RealInput) => Promise<void>,
): Promise<void> {
  const input = await realInput();
  const none = "no folder with SmolLM2 and GSM8K at HOLDFAST_SHARED or ../shared";
  const ignore = input === null && Deno.env.get("CI") !== "true";
  if (ignore) console.log(`skipped: '${name}': ${none}`);
  Deno.test({
    name,
    ignore,
    async fn() {
      if (input === null) throw new Error(`Cannot test on real input: ${none}`);
      await fn(input);
    },
  });
}

/**
 * SmolLM2-135M-Instruct as a Hugging Face directory; made once, and kept in the
 * repository's home.
 */
export async function smollm2({ tool }: RealInput): Promise<string> {
  const directory = join(HOME, "tests/smollm2");
  if (await isThere(directory)) return directory;
  // It has gguf, which transformers opens the weights with.
  const python = await ensureTrl();
  const partial = `${directory}.${Deno.pid}.tmp`;
  await runPython(python, [tool, partial], { HF_HUB_OFFLINE: "1" });
  await Deno.rename(partial, directory);
  return directory;
}

/** Runs Python and returns what it printed. @throws With its last lines, if it fails. */
export async function runPython(
  python: string,
  args: string[],
  env: Record<string, string>,
): Promise<string> {
  const command = new Deno.Command(python, {
    args,
    env,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  });
  const { success, stdout, stderr } = await command.output();
  if (success) return new TextDecoder().decode(stdout);
  const lines = new TextDecoder().decode(stderr).trimEnd().split("\n").slice(-12);
  throw new Error(`Cannot run ${python} ${args.join(" ")}:\n${lines.join("\n")}`);
}

async function isThere(path: string): Promise<boolean> {
  try {
    await Deno.stat(path);
    return true;
  } catch (cause) {
    if (cause instanceof Deno.errors.NotFound) return false;
    throw cause;
  }
}
