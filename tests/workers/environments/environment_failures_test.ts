/** Environments that cannot be made: damaged downloads, full disks, stops. */
import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { join } from "node:path";
import { DrainedError, InfrastructureError } from "../../../engine/mod.ts";
import { ensureEnvironment, existingEnvironment } from "../../../workers/mod.ts";
import { Uv } from "../../../workers/environments/uv.ts";
import { withHome } from "../fixtures.ts";
import { NOWHERE, options, requirements, SHARED, wheels } from "./tiny_environments.ts";

Deno.test("a file that is not the locked one is refused, and the error says what to do", () =>
  withHome(async (home) => {
    const dir = join(home, "wheels");
    const [torch] = await wheels(dir, ["tiny_other"]);
    await wheels(dir, ["tiny_other"], 2);
    const chosen = await options(home, { torch });
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

Deno.test("a stop ends the creation of an environment at once, and the next use creates it", () =>
  withHome(async (home) => {
    const { python } = SHARED;
    const { path } = await Uv.place(home, python);
    await Deno.mkdir(join(path, "bin"), { recursive: true });
    await Deno.symlink(python.path, join(path, "bin", "python"));
    const stubborn = "#!/bin/sh\ntrap '' INT TERM\necho waits >&2\nsleep 600\n";
    await Deno.writeTextFile(join(path, "bin", "uv"), stubborn, { mode: 0o755 });
    const stop = new AbortController();
    const watcher = Deno.watchFs(home);
    const ensuring = ensureEnvironment("torch_cpu", {
      dir: home,
      requirements_dir: await requirements(home),
      signal: stop.signal,
    });
    const ended = rejects(ensuring, (error: Error) => {
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
    for (const chosen of [{ base: none }, { user_python: none }]) {
      await rejects(ensureEnvironment("torch_cpu", { dir, ...chosen, signal }), DrainedError);
      await rejects(ensureEnvironment("torch_cpu", { dir, ...chosen }), /does not run/);
    }
    await rejects(existingEnvironment("torch_cpu", { dir, base: none, signal }), /^Error: Ctrl-C$/);
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
    deepStrictEqual(chosen.lines, []);
  }));
