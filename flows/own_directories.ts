/** Directories that a run's stages write into `runs/RUN` and go on from: what is lost of them is made again. */
import { type Context, isNothing } from "../engine/mod.ts";
import { Paths } from "./resources.ts";

type File = { path: string; bytes: number };

/**
 * Whether a directory that a stage of this run wrote holds its files, by name and size; without `files`, whether it
 * holds any and none is empty. A directory of another run, as a fork has them, is not this run's to make: whoever opens
 * it names what is missing.
 */
export async function holds(
  dir: string,
  { ctx, files }: { ctx: Pick<Context, "resource">; files?: readonly File[] },
): Promise<boolean> {
  if (!dir.startsWith(`${ctx.resource(Paths).run}/`)) return true;
  if (files === undefined) {
    const sizes = await sizesIn(dir);
    return sizes.length > 0 && sizes.every((size) => size > 0);
  }
  const found = await Promise.all(files.map(({ path }) => sizeOf(`${dir}/${path}`)));
  return files.every(({ bytes }, i) => found[i] === bytes);
}

/** Of the files that lie in it. */
async function sizesIn(dir: string): Promise<number[]> {
  try {
    const names = await Array.fromAsync(Deno.readDir(dir), ({ name }) => name);
    const sizes = await Promise.all(names.map((name) => sizeOf(`${dir}/${name}`)));
    return sizes.filter((size) => size !== null);
  } catch (error) {
    if (isNothing(error)) return [];
    throw error;
  }
}

/** Null: there is no file. */
async function sizeOf(path: string): Promise<number | null> {
  try {
    const { isFile, size } = await Deno.stat(path);
    return isFile ? size : null;
  } catch (error) {
    if (isNothing(error)) return null;
    throw error;
  }
}
