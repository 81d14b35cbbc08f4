/** Directories that a run's stages write to `runs/RUN` and later read: lost ones are recreated. */
import type { z } from "zod";
import { type Context, isNothing, sha256Hex } from "../../engine/mod.ts";
import { type FileEntry as Entry, firstProblem } from "../../workers/mod.ts";
import { Paths } from "../resources.ts";

type FileEntry = z.infer<typeof Entry>;
type File = { path: string; bytes: number };
type At = { ctx: Pick<Context, "resource"> };

/**
 * Whether a directory that a stage of this run wrote still has its files, by name and size. A fork
 * may have directories of its parent, which it must not recreate: opening them names what is
 * missing.
 */
export async function holds(
  dir: string,
  { ctx, files }: At & { files: readonly File[] },
): Promise<boolean> {
  if (!isInRun(dir, ctx)) return true;
  const found = await Promise.all(files.map(({ path }) => sizeOf(`${dir}/${path}`)));
  return files.every(({ bytes }, i) => found[i] === bytes);
}

/** The same for a small directory, by the content of its files. */
export async function isWhole(
  dir: string,
  { ctx, files }: At & { files: readonly FileEntry[] },
): Promise<boolean> {
  return !isInRun(dir, ctx) || await firstProblem(dir, files) === null;
}

/** Every file of a small directory. */
export async function filesIn(dir: string): Promise<FileEntry[]> {
  const names = await Array.fromAsync(Deno.readDir(dir), ({ name }) => name);
  return await Promise.all(
    names.sort().map(async (path) => {
      const bytes = await Deno.readFile(`${dir}/${path}`);
      return { path, sha256: sha256Hex(bytes), bytes: bytes.length };
    }),
  );
}

function isInRun(dir: string, ctx: At["ctx"]): boolean {
  return dir.startsWith(`${ctx.resource(Paths).run}/`);
}

/** null: there is no file. */
async function sizeOf(path: string): Promise<number | null> {
  try {
    const { isFile, size } = await Deno.stat(path);
    return isFile ? size : null;
  } catch (error) {
    if (isNothing(error)) return null;
    throw error;
  }
}
