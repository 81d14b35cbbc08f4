import { createHash } from "node:crypto";
import { basename, dirname } from "node:path";
import { z } from "zod";
import { isNothing } from "../engine/mod.ts";

/** A file that is missing (found: null) or has other bytes than were recorded. */
export type FileProblem = { file: string; expected: string; found: string | null };

/** A `note/checkpoint_set_aside` row: recorded before the directory is moved. Its key is the checkpoint's version. */
export const SetAside = z.strictObject({
  dir: z.string(),
  to: z.string(),
  file: z.string(),
  expected: z.string().describe("sha256 that was recorded."),
  found: z.string().nullable().describe("sha256 that the file has now; null: it is missing."),
});
export type SetAside = z.infer<typeof SetAside>;

/** The first file under `dir` that is not what was recorded; null: all are whole. */
export async function firstProblem(
  dir: string,
  files: readonly { path: string; sha256: string }[],
): Promise<FileProblem | null> {
  for (const { path, sha256 } of files) {
    const found = await hashOf(`${dir}/${path}`);
    if (found !== sha256) return { file: path, expected: sha256, found };
  }
  return null;
}

/** `problem` in words. */
export function problemText({ file, expected, found }: FileProblem): string {
  if (found === null) return `${file} is missing`;
  return `${file} is not what was saved: its sha256 is ${found.slice(0, 12)}, recorded ${expected.slice(0, 12)}`;
}

/** Where a damaged checkpoint goes: beside the others, where a person can look at it. */
export function asidePath(dir: string): string {
  return `${dirname(dir)}/${ASIDE}/${basename(dir)}`;
}
export const ASIDE = "set_aside";

/** Moves a damaged checkpoint out of the way. A second call, or a directory that is gone, is no error. */
export async function moveAside({ dir, to }: Pick<SetAside, "dir" | "to">): Promise<void> {
  await Deno.mkdir(dirname(to), { recursive: true });
  await Deno.rename(dir, to).catch((error) => {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  });
}

async function hashOf(path: string): Promise<string | null> {
  const hash = createHash("sha256");
  try {
    const opened = await Deno.open(path);
    for await (const chunk of opened.readable) hash.update(chunk);
  } catch (error) {
    if (isNothing(error)) return null;
    throw error;
  }
  return hash.digest("hex");
}
