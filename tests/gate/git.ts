const ROOT = new URL("../../", import.meta.url).pathname;

/** What a git command prints in the repository; empty outside of one. */
export async function git(...args: string[]): Promise<string> {
  const { stdout } = await new Deno.Command("git", {
    args,
    cwd: ROOT,
    stderr: "null",
  }).output();
  return new TextDecoder().decode(stdout).trim();
}
