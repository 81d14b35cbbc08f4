/** Environments of tiny packages, which are made in a moment and without a network. */
import { ok } from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { environmentsDir } from "../../../workers/mod.ts";
import { basePython } from "../../../workers/environments/python_interpreter.ts";
import { Creation } from "../../../workers/environments/creation.ts";
import { Uv } from "../../../workers/environments/uv.ts";

/**
 * Wheels with one module each, made by hand: an installation that needs no network. Prints their
 * hashes.
 */
const WHEELS = `
import hashlib, sys, zipfile
directory, value, *names = sys.argv[1:]
for name in names:
    path = f"{directory}/{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        def add(file, text):
            # Of a fixed date: the same content has the same hash at any time.
            wheel.writestr(zipfile.ZipInfo(file), text)
        add(f"{name}.py", f"value = {value}\\n")
        info = f"{name}-1.0.dist-info"
        add(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: {name}\\nVersion: 1.0\\n")
        tag = "Root-Is-Purelib: true\\nTag: py3-none-any\\n"
        add(f"{info}/WHEEL", f"Wheel-Version: 1.0\\n{tag}")
        add(f"{info}/RECORD", "")
    print(hashlib.sha256(open(path, "rb").read()).hexdigest())
`;

/** Writes the wheels; returns the lines that lock each of them. */
export async function wheels(dir: string, names: string[], value = 1): Promise<string[]> {
  await Deno.mkdir(dir, { recursive: true });
  const { success, stdout } = await new Deno.Command("python3", {
    args: ["-c", WHEELS, dir, `${value}`, ...names],
  })
    .output();
  ok(success);
  const hashes = new TextDecoder().decode(stdout).trim().split("\n");
  return names.map((name, i) =>
    `--no-index\n--find-links ${dir}\n${name}==1.0 --hash=sha256:${hashes[i]}\n`
  );
}

/** Requirements that no index has. */
export const NOWHERE = `--no-index\nnone_such==1.0 --hash=sha256:${"0".repeat(64)}\n`;

/** What all tests read: made once, since each start of a Python or of pip takes long. */
export const SHARED = await (async () => {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-wheels-" });
  addEventListener("unload", () => Deno.removeSync(dir, { recursive: true }));
  const python = await basePython();
  const uv = await Uv.place(environmentsDir(), python);
  // This machine's own uv, so that no test fetches one.
  await Uv.of(environmentsDir(), { python, creation: new Creation(uv, {}) });
  return { locked: await wheels(dir, ["tiny_pytorch", "tiny_cuda", "tiny_module"]), python, uv };
})();

/**
 * Requirement files of the kind `torch_cpu`, of two tiny packages, and what of the two builds of
 * PyTorch can be had.
 */
export async function requirements(
  home: string,
  changed: Partial<Record<string, string>> = {},
): Promise<URL> {
  const { locked } = SHARED;
  const files = { pytorch_cpu: locked[0], pytorch_cuda: locked[1], torch: locked[2], ...changed };
  const dir = join(home, "requirements");
  await Deno.mkdir(dir, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    await Deno.writeTextFile(join(dir, `${name}.txt`), text!);
  }
  return pathToFileURL(`${dir}/`);
}

/** The shared uv, and what is said. */
export async function options(dir: string, changed: Partial<Record<string, string>> = {}) {
  const mine = await Uv.place(dir, SHARED.python);
  await Deno.symlink(SHARED.uv.path, mine.path);
  const lines: string[] = [];
  const onProgress = ({ text, passing }: { text: string; passing: boolean }) =>
    void (passing || lines.push(text));
  return { dir, requirements_dir: await requirements(dir, changed), onProgress, lines };
}

/** Which of the tiny packages an environment has. */
export async function modules(python: string): Promise<string> {
  const probe = "import importlib.util as u; " +
    "print(*[n for n in ('tiny_pytorch', 'tiny_cuda', 'tiny_module') if u.find_spec(n)])";
  const { stdout } = await new Deno.Command(python, { args: ["-c", probe] }).output();
  return new TextDecoder().decode(stdout).trim();
}
