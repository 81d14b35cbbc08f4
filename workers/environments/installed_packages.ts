import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { runPython } from "../processes/run_python.ts";

const InstalledPackages = z.strictObject({
  packages: z.record(z.string(), z.string()).describe("Versions that should be there, by name."),
  missing: z.array(z.string()).describe("What is not there, in words: one for each package."),
});
/** What an environment should have, and what of it is missing. */
export type InstalledPackages = z.infer<typeof InstalledPackages>;

/** Files of locked requirements, or what was there before. */
type Wanted = { locks: readonly URL[] } | { packages: Record<string, string> };

/**
 * Looks for every version and every file of what an environment should have. Takes a third of a
 * second; the environment's own Python reads the locks, which depend on it.
 */
export async function installedPackages(
  path: string,
  wanted: Wanted,
  signal?: AbortSignal,
): Promise<InstalledPackages> {
  const input = "locks" in wanted
    ? { locks: wanted.locks.map((lock) => fileURLToPath(lock)) }
    : wanted;
  const { code, stdout, stderr } = await runPython(join(path, "bin", "python"), {
    module: "holdfast_worker.installed",
    input: JSON.stringify(input),
    signal,
  });
  if (code === 0) return InstalledPackages.parse(JSON.parse(stdout));
  const why = stderr.trimEnd().split("\n").at(-1) || `it exits with ${code}`;
  return { packages: {}, missing: [`a Python that runs: ${why}`] };
}
