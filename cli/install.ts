/**
 * `deno task install [DIR]`: writes the command `holdfast`, which runs this clone from any
 * directory. `deno install` resolves the packages itself, so it does not take those of our lock.
 */
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

function quoted(path: string): string {
  return `'${path.replaceAll("'", `'\\''`)}'`;
}

function script(): string {
  const deno = quoted(Deno.execPath());
  const [config, main] = [quoted(`${ROOT}/deno.json`), quoted(`${ROOT}/cli/main.ts`)];
  return `#!/bin/sh
# Written by \`deno task install\` of Holdfast.
deno=${deno}
[ -x "$deno" ] || deno=deno
exec "$deno" run -A --quiet --config ${config} ${main} "$@"
`;
}

/** The usual place of a user's own commands. */
function usual(): string {
  const home = Deno.env.get("HOME");
  if (home) return `${home}/.local/bin`;
  console.error("Cannot choose a directory because HOME is not set. Fix: deno task install DIR");
  Deno.exit(2);
}

function isOurs(path: string): boolean {
  try {
    return Deno.readTextFileSync(path).includes("Written by `deno task install` of Holdfast");
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return true;
    throw error;
  }
}

const dir = resolve(Deno.env.get("INIT_CWD") ?? ".", Deno.args[0] ?? usual());
const path = `${dir}/holdfast`;
Deno.mkdirSync(dir, { recursive: true });
if (!isOurs(path)) {
  console.error(`Cannot write ${path} because it is a different program. Fix: name a directory`);
  Deno.exit(2);
}
Deno.writeTextFileSync(path, script(), { mode: 0o755 });
Deno.chmodSync(path, 0o755);
console.log(`${path} runs ${ROOT}`);
if (!(Deno.env.get("PATH") ?? "").split(":").includes(dir)) {
  console.log(`Its directory is not on PATH. Fix: export PATH=${quoted(dir)}:"$PATH"`);
}
