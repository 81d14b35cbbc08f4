import { unlessMissing } from "../../flows/mod.ts";

/** Names in a directory, sorted. None if it is not a directory: then nothing in it is ours. */
export async function namesIn(dir: string): Promise<string[]> {
  const entries = await Array.fromAsync(Deno.readDir(dir), ({ name }) => name).catch((error) => {
    if (!(error instanceof Deno.errors.FilesystemLoop)) return unlessMissing(error);
  });
  return (entries ?? []).sort();
}
