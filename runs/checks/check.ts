import { freeBytes } from "../../engine/mod.ts";

/** One line of `doctor`: what was checked, the verdict, and the fix if there is one. */
export type Check = {
  name: string;
  verdict: "OK" | "WARN" | "FAIL";
  says: string;
  fix: string | null;
};

export const ok = (name: string, says: string): Check => ({ name, verdict: "OK", says, fix: null });

export const warn = (name: string, says: string, fix: string): Check => ({
  name,
  verdict: "WARN",
  says,
  fix,
});

export const fail = (name: string, says: string, fix: string): Check => ({
  name,
  verdict: "FAIL",
  says,
  fix,
});

const DISK_NEEDED_BYTES = 2 * 2 ** 30;

/** Whether the disk of an existing directory has room. */
export function room(name: string, path: string, fix: string): Check {
  const free = freeBytes(path) ?? 0;
  const says = `${(free / 2 ** 30).toFixed(1)} GiB free at ${path}`;
  return free >= DISK_NEEDED_BYTES ? ok(name, says) : warn(name, says, fix);
}

/** First line of a command's output; null if it could not be run or failed. */
export async function firstLine(
  command: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<string | null> {
  try {
    const options = { args, env, stdin: "null", stderr: "null" } as const;
    const { success, stdout } = await new Deno.Command(command, options).output();
    return success ? new TextDecoder().decode(stdout).trim().split("\n")[0] ?? "" : null;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.PermissionDenied) {
      return null;
    }
    throw error;
  }
}
