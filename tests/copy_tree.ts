import { runToFile } from "./spawn_to_file.ts";

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

/**
 * Copies what a checkout holds, without what was made in it. Both end in a slash; `to` is there.
 */
export async function copyTree(from: string, to: string): Promise<void> {
  for await (const { name, isDirectory, isFile } of Deno.readDir(from)) {
    if (NOT_COPIED.has(name)) continue;
    if (isFile) await Deno.copyFile(`${from}${name}`, `${to}${name}`);
    if (!isDirectory) continue;
    await Deno.mkdir(`${to}${name}`);
    await copyTree(`${from}${name}/`, `${to}${name}/`);
  }
}

/** Files of the copy `to` that `from` has not, or has otherwise; sorted. */
export async function differing(from: string, to: string, room = ""): Promise<string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(`${to}${room}`)) {
    const path = `${room}${name}`;
    if (isDirectory) found.push(...await differing(from, to, `${path}/`));
    else if (
      await Deno.readTextFile(`${from}${path}`).catch(() => null) !==
        await Deno.readTextFile(`${to}${path}`)
    ) {
      found.push(path);
    }
  }
  return found.sort();
}

/** Runs Deno in a copy. */
export async function denoIn(
  cwd: string,
  args: string[],
): Promise<{ ok: boolean; output: string }> {
  const argv = [Deno.execPath(), ...args];
  const { code, output } = await runToFile(argv, { cwd, env: { NO_COLOR: "1" } });
  return { ok: code === 0, output };
}
