const NOT_COPIED = new Set([
  ".git",
  ".holdfast",
  ".pytest_cache",
  ".ruff_cache",
  "__pycache__",
  "node_modules",
  "models",
  "datasets",
]);

/** Copies what a checkout holds, without what was made in it. Both end in a slash; `to` is there. */
export async function copyTree(from: string, to: string): Promise<void> {
  for await (const { name, isDirectory, isFile } of Deno.readDir(from)) {
    if (NOT_COPIED.has(name)) continue;
    if (isFile) await Deno.copyFile(`${from}${name}`, `${to}${name}`);
    if (!isDirectory) continue;
    await Deno.mkdir(`${to}${name}`);
    await copyTree(`${from}${name}/`, `${to}${name}/`);
  }
}
