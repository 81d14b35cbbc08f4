import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { InfrastructureError, InvalidInputError } from "../../engine/mod.ts";
import {
  checkPython,
  ensureEnvironment,
  ensureRequirements,
  environmentPath,
  Environments,
  findPython,
  pythonVersion,
} from "../../workers/mod.ts";
import { withHome } from "./fixtures.ts";

/** A wheel with one empty module, made by hand: an installation that needs no network. */
const WHEEL = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("tiny_module.py", "value = 1\\n")
    wheel.writestr("tiny-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n")
    wheel.writestr("tiny-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("tiny-1.0.dist-info/RECORD", "")
`;

async function requirements(home: string, text?: string): Promise<string> {
  const dir = join(home, "requirements");
  await Deno.mkdir(dir, { recursive: true });
  const wheel = join(dir, "tiny-1.0-py3-none-any.whl");
  const made = await new Deno.Command("python3", { args: ["-c", WHEEL, wheel] }).output();
  ok(made.success);
  await Deno.writeTextFile(join(dir, "torch.txt"), text ?? `--no-index\n${wheel}\n`);
  return dir;
}

/** An executable that answers as `text` says. */
async function fakePython(home: string, text: string): Promise<string> {
  const path = join(home, `python-${crypto.randomUUID()}`);
  await Deno.writeTextFile(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return path;
}

Deno.test("ensureEnvironment() makes an environment once, also for two at a time, and again if it was cut short", () =>
  withHome(async (home) => {
    const steps: string[] = [];
    const options = {
      home,
      requirementsDir: await requirements(home),
      onProgress: ({ step, detail }: { step: string; detail: string }) => void (detail === "" && steps.push(step)),
    };
    const [first, second] = await Promise.all([
      ensureEnvironment("torch", options),
      ensureEnvironment("torch", options),
    ]);
    strictEqual(first, second);
    deepStrictEqual(steps, ["venv", "install"]);
    const probe = await new Deno.Command(first, { args: ["-c", "import tiny_module; print(tiny_module.value)"] })
      .output();
    strictEqual(new TextDecoder().decode(probe.stdout), "1\n");
    const { path, marker } = await environmentPath("torch", options);
    ok(first.startsWith(join(home, "env", "torch-")) && first.startsWith(path));
    await Deno.remove(marker); // As if its maker had died before the last write.
    await Deno.writeTextFile(join(path, "leftover"), "");
    await ensureEnvironment("torch", options);
    await rejects(Deno.stat(join(path, "leftover")), Deno.errors.NotFound);
    const file = pathToFileURL(join(options.requirementsDir, "torch.txt"));
    strictEqual(await ensureRequirements(file, options), first, "the name and the text of a file are all that counts");
    strictEqual(steps.length, 4);
  }));

Deno.test("environmentPath() changes with the requirements, those they include too", () =>
  withHome(async (home) => {
    const dir = await requirements(home);
    const pathOf = async () => (await environmentPath("deepspeed", { home, requirementsDir: dir })).path;
    await Deno.writeTextFile(join(dir, "deepspeed.txt"), "-r torch.txt\n");
    const first = await pathOf();
    await Deno.writeTextFile(join(dir, "torch.txt"), "another\n");
    const second = await pathOf();
    ok(first !== second && /\/env\/deepspeed-[0-9a-f]{12}$/.test(second));
  }));

Deno.test("ensureEnvironment() that fails in pip says the cause first, then its last lines and the log", () =>
  withHome(async (home) => {
    const requirementsDir = await requirements(home, "--no-index\nno-such-package-anywhere==1.0\n");
    await rejects(ensureEnvironment("torch", { home, requirementsDir }), (error: Error) => {
      ok(error instanceof InfrastructureError);
      strictEqual(error.retryable, false);
      ok(
        /^Cannot make the Python environment 'torch' as step 'install' failed: ERROR: .*no-such-package/.test(
          error.message,
        ),
      );
      const log = error.message.split("log: ")[1]!;
      return Deno.readTextFileSync(log).includes("no-such-package-anywhere");
    });
  }));

Deno.test("findPython() names a Python that is too old, broken or missing in one sentence", () =>
  withHome(async (home) => {
    const old = await fakePython(home, "echo 3.8.1");
    const broken = await fakePython(home, "echo oops >&2; exit 1");
    const sentence = (text: RegExp) => (error: Error) =>
      error instanceof InvalidInputError && text.test(error.message) && !error.message.includes("\n");
    await rejects(findPython(old), sentence(/Python 3\.10 or newer is needed: '.*' is 3\.8\.1 \(install one/));
    await rejects(findPython(broken), sentence(/'.*' does not run/));
    await rejects(findPython("/no/such/python"), sentence(/'\/no\/such\/python' does not run/));
    const found = await findPython();
    ok(/^3\.1\d\./.test(await pythonVersion(found) ?? ""));
  }));

Deno.test("checkPython() accepts what has the modules and names those that are missing", async () => {
  await checkPython("python3", ["json", "sqlite3"]);
  await rejects(
    checkPython("python3", ["json", "no_such_module_a", "no_such_module_b"]),
    (error: Error) =>
      error instanceof InvalidInputError && error.message.includes("lacks no_such_module_a, no_such_module_b"),
  );
  await rejects(checkPython("/no/such/python", ["json"]), /as it does not run/);
});

Deno.test("Environments.python() only checks a user's own environment, and makes nothing", () =>
  withHome(async (home) => {
    const own = await fakePython(home, `case "$2" in *version_info*) echo 3.12.0;; *) echo;; esac`);
    strictEqual(await new Environments(home).python("deepspeed", own), own);
    await rejects(Deno.stat(join(home, "env")), Deno.errors.NotFound);
  }));
