import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { DrainedError, InfrastructureError } from "../../engine/mod.ts";
import {
  ensureEnvironment,
  ensureRequirements,
  environmentsDir,
  madeEnvironment,
} from "../../workers/mod.ts";
import { basePython } from "../../workers/python_interpreter.ts";
import { Making } from "../../workers/making.ts";
import { Uv } from "../../workers/uv.ts";
import { withHome } from "./fixtures.ts";
import { fakePython } from "./fake_python.ts";

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
async function wheels(dir: string, names: string[], value = 1): Promise<string[]> {
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

const NOWHERE = `--no-index\nnone_such==1.0 --hash=sha256:${"0".repeat(64)}\n`;

/**
 * Requirement files of the kind `torch_cpu`, of two tiny packages, and what of the two builds of
 * PyTorch can be had.
 */
async function requirements(
  home: string,
  changed: Partial<Record<string, string>> = {},
): Promise<URL> {
  const locked = await wheels(join(home, "wheels"), ["tiny_pytorch", "tiny_cuda", "tiny_module"]);
  const files = { pytorch_cpu: locked[0], pytorch_cuda: locked[1], torch: locked[2], ...changed };
  const dir = join(home, "requirements");
  await Deno.mkdir(dir, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    await Deno.writeTextFile(join(dir, `${name}.txt`), text!);
  }
  return pathToFileURL(`${dir}/`);
}

/** This machine's own uv, so that no test fetches one; and what is said. */
async function options(dir: string, changed: Partial<Record<string, string>> = {}) {
  const python = await basePython();
  const [mine, shared] = await Promise.all([
    Uv.place(dir, python),
    Uv.place(environmentsDir(), python),
  ]);
  await Uv.of(environmentsDir(), { python, making: new Making(shared, {}) });
  await Deno.symlink(shared.path, mine.path);
  const said: string[] = [];
  const onProgress = ({ text, passing }: { text: string; passing: boolean }) =>
    void (passing || said.push(text));
  return { dir, requirements_dir: await requirements(dir, changed), onProgress, said };
}

async function modules(python: string): Promise<string> {
  const probe = "import importlib.util as u; " +
    "print(*[n for n in ('tiny_pytorch', 'tiny_cuda', 'tiny_module') if u.find_spec(n)])";
  const { stdout } = await new Deno.Command(python, { args: ["-c", probe] }).output();
  return new TextDecoder().decode(stdout).trim();
}

Deno.test("ensureEnvironment() makes an environment once, and again if it was cut short", () =>
  withHome(async (home) => {
    const chosen = await options(home);
    const [first, second] = await Promise.all([
      ensureEnvironment("torch_cpu", chosen),
      ensureEnvironment("torch_cpu", chosen),
    ]);
    strictEqual(first, second);
    strictEqual(chosen.said.filter((text) => text.includes("ready after")).length, 1);
    strictEqual(await modules(first), "tiny_pytorch tiny_module");
    const path = first.slice(0, -"/bin/python".length);
    ok(path.startsWith(join(home, "torch_cpu-cpython3.")));
    // As if its maker had died before the renaming.
    await Deno.rename(path, `${path}.0a1b2c3d.making`);
    await Deno.writeTextFile(join(`${path}.0a1b2c3d.making`, "leftover"), "");
    await ensureEnvironment("torch_cpu", chosen);
    await rejects(Deno.stat(join(path, "leftover")), Deno.errors.NotFound);
  }));

Deno.test("ensureEnvironment() makes a damaged environment again", () =>
  withHome(async (home) => {
    const chosen = await options(home);
    const python = await ensureEnvironment("torch_cpu", chosen);
    const path = python.slice(0, -"/bin/python".length);
    const [lib] = [...Deno.readDirSync(`${path}/lib`)];
    const module = `${path}/lib/${lib!.name}/site-packages/tiny_module.py`;
    await Deno.remove(module);
    await Deno.remove(`${path}/packages.json`); // As `doctor` does, or an older version.
    strictEqual(await ensureEnvironment("torch_cpu", chosen), python);
    ok((await Deno.stat(module)).isFile);
  }));

Deno.test("a changed requirements file makes a different environment", () =>
  withHome(async (home) => {
    const chosen = await options(home);
    const made = new Set([await ensureEnvironment("torch_cpu", chosen)]);
    for (const name of ["torch", "pytorch_cpu"]) {
      const file = new URL(`${name}.txt`, chosen.requirements_dir);
      await Deno.writeTextFile(file, `# another\n${await Deno.readTextFile(file)}`);
      made.add(await ensureEnvironment("torch_cpu", chosen));
    }
    strictEqual(made.size, 3);
  }));

Deno.test("a file that is not the locked one is refused, and the error says what to do", () =>
  withHome(async (home) => {
    const chosen = await options(home);
    await wheels(join(home, "wheels"), ["tiny_module"], 2);
    await rejects(ensureEnvironment("torch_cpu", chosen), (error: Error) => {
      match(
        error.message,
        /^Cannot create .* environment 'torch_cpu' because the installation failed: .*mirror/,
      );
      return /Hash mismatch/.test(error.message);
    });
  }));

Deno.test("a failed installation says the cause, a fix, the last lines and the log", () =>
  withHome(async (home) => {
    const chosen = await options(home, { torch: NOWHERE });
    await rejects(ensureEnvironment("torch_cpu", chosen), (error: Error) => {
      ok(error instanceof InfrastructureError);
      strictEqual(error.retryable, false);
      const [head] = error.message.split("\n");
      match(
        head!,
        /^Cannot create .* environment 'torch_cpu' because .*none-such.*\. Fix: check the network/,
      );
      const log = error.message.split("log: ")[1]!;
      return Deno.readTextFileSync(log).includes("none-such");
    });
  }));

Deno.test("without a CPU build of PyTorch the CUDA build is installed, its size said", () =>
  withHome(async (home) => {
    const chosen = await options(home, { pytorch_cpu: NOWHERE });
    const python = await ensureEnvironment("torch_cpu", chosen);
    strictEqual(await modules(python), "tiny_cuda tiny_module");
    const warned = chosen.said.findIndex((text) =>
      /CPU build is not in your .* installing the CUDA build.* HOLDFAST_PYTHON$/.test(text)
    );
    ok(warned > 0);
    match(
      chosen.said[warned + 1]!,
      /it takes about \d+\.\d GiB .*; up to \d+\.\d GiB are downloaded/,
    );
    await rejects(
      ensureEnvironment("torch_cpu", {
        ...chosen,
        // Another text, so that what was made above is not found again.
        requirements_dir: await requirements(home, {
          pytorch_cpu: `${NOWHERE}# again\n`,
          pytorch_cuda: NOWHERE,
        }),
      }),
      /because looking up PyTorch failed: .*none-such/,
    );
  }));

Deno.test("PyTorch's own index is asked for a CPU build before the CUDA build is", () =>
  withHome(async (home) => {
    const python = await basePython();
    const { path } = await Uv.place(home, python);
    await Deno.mkdir(join(path, "bin"), { recursive: true });
    await Deno.symlink(python.path, join(path, "bin", "python"));
    const asked = join(home, "asked");
    const answer =
      "#!/bin/sh\nif [ $1 = venv ]; then for made; do :; done; mkdir -p $made; exit; fi\n" +
      `echo "$@" >> '${asked}'\ncase "$*" in *dry-run*torch-backend*) exit 0;; ` +
      "*torch-backend*dry-run*) exit 0;; *dry-run*) exit 1;; esac\n";
    await Deno.writeTextFile(join(path, "bin", "uv"), answer, { mode: 0o755 });
    // That uv installs nothing, which is tried again without its cache and then refused.
    await rejects(
      ensureEnvironment("torch_cpu", { dir: home, requirements_dir: await requirements(home) }),
      /'torch_cpu' because the installation is incomplete: it lacks a Python that runs: .*Fix: /,
    );
    const calls = (await Deno.readTextFile(asked)).trim().split("\n");
    const short = calls.map((call) =>
      ["--dry-run", "--torch-backend cpu", "pytorch_cpu", "pytorch_cuda", "/torch.txt"].filter((
        part,
      ) => call.includes(part)).join(" ")
    );
    deepStrictEqual(short, [
      "--dry-run pytorch_cpu",
      "--dry-run --torch-backend cpu pytorch_cpu",
      "--torch-backend cpu pytorch_cpu",
      "/torch.txt",
      "--torch-backend cpu pytorch_cpu",
      "/torch.txt",
    ]);
    const again = calls.map((call) => call.endsWith(" --reinstall --no-cache"));
    deepStrictEqual(again, [false, false, false, false, true, true]);
    ok(calls.every((call) => call.includes("--require-hashes")));
  }));

Deno.test("a stop ends the creation of an environment at once, and the next use creates it", () =>
  withHome(async (home) => {
    const python = await basePython();
    const { path } = await Uv.place(home, python);
    await Deno.mkdir(join(path, "bin"), { recursive: true });
    await Deno.symlink(python.path, join(path, "bin", "python"));
    const stubborn = "#!/bin/sh\ntrap '' INT TERM\necho waits >&2\nsleep 600\n";
    await Deno.writeTextFile(join(path, "bin", "uv"), stubborn, { mode: 0o755 });
    const stop = new AbortController();
    const watcher = Deno.watchFs(home);
    const making = ensureEnvironment("torch_cpu", {
      dir: home,
      requirements_dir: await requirements(home),
      signal: stop.signal,
    });
    const ended = rejects(making, (error: Error) => {
      ok(error instanceof DrainedError && error.retryable && !error.counted, String(error));
      match(
        error.message,
        /^Cannot finish the Python environment 'torch_cpu' because the run stops/,
      );
      return true;
    });
    const isWaiting = () =>
      [...Deno.readDirSync(home)].some(({ name }) =>
        name.startsWith("torch_cpu") && name.endsWith(".log") &&
        Deno.readTextFileSync(join(home, name)).includes("waits")
      );
    for await (const _ of watcher) if (isWaiting()) break;
    stop.abort();
    await ended;
  }));

Deno.test("a stop while a Python is looked for is no fault of that Python", () =>
  withHome(async (dir) => {
    const none = "/no/such/python";
    const signal = AbortSignal.abort(new Error("Ctrl-C"));
    for (const chosen of [{ base: none }, { own: none }]) {
      await rejects(ensureEnvironment("torch_cpu", { dir, ...chosen, signal }), DrainedError);
      await rejects(ensureEnvironment("torch_cpu", { dir, ...chosen }), /does not run/);
    }
    await rejects(madeEnvironment("torch_cpu", { dir, base: none, signal }), /^Error: Ctrl-C$/);
  }));

Deno.test("a disk without room is found before anything is fetched", () =>
  withHome(async (home) => {
    const chosen = await options(home);
    await rejects(
      ensureEnvironment("torch_cpu", { ...chosen, freeBytes: () => 2 ** 29 }),
      {
        name: "InfrastructureError",
        message:
          /disk has no room: it takes about 1\.\d GiB in .*, which has 0\.5 GiB free\. .*_ENV_DIR/,
      },
    );
    deepStrictEqual(chosen.said, []);
  }));

Deno.test("ensureRequirements() names an environment after its file", () =>
  withHome(async (home) => {
    const chosen = await options(home);
    const python = await ensureRequirements(new URL("torch.txt", chosen.requirements_dir), chosen);
    strictEqual(python, await ensureEnvironment("torch_cpu", chosen));
  }));

Deno.test("ensureEnvironment() only checks a user's own environment, and makes nothing", () =>
  withHome(async (home) => {
    const own = await fakePython(
      home,
      `case "$2" in *version_info*) echo 3.12.0 $0;; *) echo;; esac`,
    );
    strictEqual(await ensureEnvironment("deepspeed_cpu", { dir: `${home}/env`, own }), own);
    await rejects(Deno.stat(join(home, "env")), Deno.errors.NotFound);
  }));
