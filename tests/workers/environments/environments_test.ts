import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { join } from "node:path";
import { ensureEnvironment, ensureRequirements } from "../../../workers/mod.ts";
import { Uv } from "../../../workers/environments/uv.ts";
import { withHome } from "../fixtures.ts";
import { fakePython } from "./fake_python.ts";
import { modules, NOWHERE, options, requirements, SHARED } from "./tiny_environments.ts";

Deno.test("ensureEnvironment() makes an environment once, and again if it was cut short", () =>
  withHome(async (home) => {
    const chosen = await options(home);
    const [first, second] = await Promise.all([
      ensureEnvironment("torch_cpu", chosen),
      ensureEnvironment("torch_cpu", chosen),
    ]);
    strictEqual(first, second);
    strictEqual(chosen.lines.filter((text) => text.includes("ready after")).length, 1);
    strictEqual(await modules(first), "tiny_pytorch tiny_module");
    const path = first.slice(0, -"/bin/python".length);
    ok(path.startsWith(join(home, "torch_cpu-cpython3.")));
    // As if its maker had died before the renaming.
    await Deno.rename(path, `${path}.0a1b2c3d.making`);
    await Deno.writeTextFile(join(`${path}.0a1b2c3d.making`, "leftover"), "");
    await ensureEnvironment("torch_cpu", chosen);
    await rejects(Deno.stat(join(path, "leftover")), Deno.errors.NotFound);
  }));

Deno.test("an environment is named after its file, made again if damaged, and another if changed", async (t) => {
  await withHome(async (home) => {
    const chosen = await options(home);
    const files = chosen.requirements_dir;
    const python = await ensureRequirements(new URL("torch.txt", files), chosen);
    await t.step("ensureRequirements() names an environment after its file", async () => {
      strictEqual(python, await ensureEnvironment("torch_cpu", chosen));
    });
    await t.step("its Python keeps what it compiles, even if the variables forbid it", async () => {
      const args = ["-c", "import tiny_module; print(tiny_module.__cached__)"];
      const env = { PYTHONDONTWRITEBYTECODE: "1" };
      const { stdout } = await new Deno.Command(python, { args, env }).output();
      ok((await Deno.stat(new TextDecoder().decode(stdout).trim())).isFile);
    });
    await t.step("ensureEnvironment() makes a damaged environment again", async () => {
      const path = python.slice(0, -"/bin/python".length);
      const [lib] = [...Deno.readDirSync(`${path}/lib`)];
      const module = `${path}/lib/${lib!.name}/site-packages/tiny_module.py`;
      await Deno.remove(module);
      await Deno.remove(`${path}/packages.json`); // As `doctor` does.
      strictEqual(await ensureEnvironment("torch_cpu", chosen), python);
      ok((await Deno.stat(module)).isFile);
    });
    await t.step("a changed requirements file makes a different environment", async () => {
      const interpreters = new Set([await ensureEnvironment("torch_cpu", chosen)]);
      for (const name of ["torch", "pytorch_cpu"]) {
        const file = new URL(`${name}.txt`, files);
        await Deno.writeTextFile(file, `# another\n${await Deno.readTextFile(file)}`);
        interpreters.add(await ensureEnvironment("torch_cpu", chosen));
      }
      strictEqual(interpreters.size, 3);
    });
  });
});

Deno.test("without a CPU build of PyTorch the CUDA build is installed, its size said", () =>
  withHome(async (home) => {
    const chosen = await options(home, { pytorch_cpu: NOWHERE });
    const python = await ensureEnvironment("torch_cpu", chosen);
    strictEqual(await modules(python), "tiny_cuda tiny_module");
    const warned = chosen.lines.findIndex((text) =>
      /CPU build is not in your .* installing the CUDA build.* HOLDFAST_PYTHON$/.test(text)
    );
    ok(warned > 0);
    match(
      chosen.lines[warned + 1]!,
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
    const { python } = SHARED;
    const { path } = await Uv.place(home, python);
    await Deno.mkdir(join(path, "bin"), { recursive: true });
    await Deno.symlink(python.path, join(path, "bin", "python"));
    const callsFile = join(home, "asked");
    const answer =
      "#!/bin/sh\nif [ $1 = venv ]; then for made; do :; done; mkdir -p $made; exit; fi\n" +
      `echo "$@" >> '${callsFile}'\ncase "$*" in *dry-run*torch-backend*) exit 0;; ` +
      "*torch-backend*dry-run*) exit 0;; *dry-run*) exit 1;; esac\n";
    await Deno.writeTextFile(join(path, "bin", "uv"), answer, { mode: 0o755 });
    // That uv installs nothing, which is tried again without its cache and then refused.
    await rejects(
      ensureEnvironment("torch_cpu", { dir: home, requirements_dir: await requirements(home) }),
      /'torch_cpu' because the installation is incomplete: it lacks a Python that runs: .*Fix: /,
    );
    const calls = (await Deno.readTextFile(callsFile)).trim().split("\n");
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

Deno.test("ensureEnvironment() only checks a user's own environment, and makes nothing", () =>
  withHome(async (home) => {
    const userPython = await fakePython(
      home,
      `case "$2" in *version_info*) echo 3.12.0 $0;; *) echo;; esac`,
    );
    strictEqual(
      await ensureEnvironment("deepspeed_cpu", { dir: `${home}/env`, user_python: userPython }),
      userPython,
    );
    await rejects(Deno.stat(join(home, "env")), Deno.errors.NotFound);
  }));
