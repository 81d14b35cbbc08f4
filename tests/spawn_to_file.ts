type SpawnOptions = { path: string; cwd: string; env: Record<string, string> };

/**
 * Starts a command whose output, both streams, goes to the file `path`. A pipe would stay open for
 * as long as any process that the command left behind, and whoever reads it would wait for that.
 */
export function spawnToFile(argv: string[], { path, cwd, env }: SpawnOptions): Deno.ChildProcess {
  const args = ["-c", 'exec "$@" > "$0" 2>&1', path, ...argv];
  return new Deno.Command("sh", { args, cwd, env, stdin: "null" }).spawn();
}

type Ended = { code: number; output: string };

/** Runs such a command to its end. */
export async function runToFile(
  argv: string[],
  options: Omit<SpawnOptions, "path">,
): Promise<Ended> {
  const path = await Deno.makeTempFile({ prefix: "holdfast-said-" });
  try {
    const { code } = await spawnToFile(argv, { ...options, path }).status;
    return { code, output: await Deno.readTextFile(path) };
  } finally {
    await Deno.remove(path);
  }
}
