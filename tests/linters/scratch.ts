const SETTINGS = new URL("../../pyproject.toml", import.meta.url);

/** Calls `body` with a directory that has our settings and these Python files. */
export async function inScratch(
  texts: Record<string, string>,
  body: (dir: string) => Promise<void>,
): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-linters-" });
  try {
    await Deno.copyFile(SETTINGS, `${dir}/pyproject.toml`);
    await Deno.mkdir(`${dir}/workers/python`, { recursive: true });
    for (const [path, text] of Object.entries(texts)) {
      await Deno.writeTextFile(`${dir}/${path}`, text);
    }
    await body(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}
