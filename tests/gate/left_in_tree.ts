import { git } from "./git.ts";

/** Files that git neither knows nor ignores. Empty outside of a repository. */
export async function strangers(): Promise<string[]> {
  const listed = await git("ls-files", "--others", "--exclude-standard");
  return listed.split("\n").filter((path) => path !== "");
}

/** What the gate says of files that appeared while tests ran; null: none did. */
export function strangersLine(before: readonly string[], after: readonly string[]): string | null {
  const known = new Set(before);
  const added = after.filter((path) => !known.has(path));
  if (added.length === 0) return null;
  const more = added.length > 3 ? ` and ${added.length - 3} more` : "";
  return `FAILED ${
    added.slice(0, 3).join(", ")
  }${more} appeared in the repository while tests ran. ` +
    "Fix: a test writes to a directory of its own (Deno.makeTempDir); if you made them, run again";
}
