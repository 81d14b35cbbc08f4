import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { placeOf } from "../../workers/made_once.ts";
import { Making } from "../../workers/making.ts";
import { findPython } from "../../workers/mod.ts";
import { Uv } from "../../workers/uv.ts";
import { withHome } from "./fixtures.ts";

const LOCK = new URL("../../workers/python/requirements/uv.txt", import.meta.url);

type Bench = {
  uv: Uv;
  making: Making;
  /** Arguments of each call of uv, with the value of some variables. */
  calls: () => Promise<string[]>;
};

/** A home with a uv that writes down how it was called, and exits with `code`. */
function withUv(body: (bench: Bench) => Promise<void>, code = 0): Promise<void> {
  return withHome(async (home) => {
    const { path, marker } = placeOf(home, { name: "uv", text: await Deno.readTextFile(LOCK) });
    const python = await findPython();
    await Deno.mkdir(join(path, "bin"), { recursive: true });
    await Deno.symlink(python.path, join(path, "bin", "python"));
    const log = join(home, "calls");
    const script = `#!/bin/sh\necho "$UV_HTTP_RETRIES $UV_PYTHON_DOWNLOADS|$*" >> '${log}'\n` +
      `exit ${code}\n`;
    await Deno.writeTextFile(join(path, "bin", "uv"), script, { mode: 0o755 });
    await Deno.writeTextFile(marker, "");
    const making = new Making(placeOf(home, { name: "test", text: "" }), {});
    const uv = await Uv.of(home, { python, making });
    const calls = async () => (await Deno.readTextFile(log)).trim().split("\n");
    await body({ uv, making, calls });
  });
}

const locked = (name: string) => ({ file: pathToFileURL(`/locks/${name}.txt`) });

Deno.test("Uv.install() installs each lock by its hashes, and compiles with the last", () =>
  withUv(async ({ uv, making, calls }) => {
    await uv.install("/py", { requirements: [locked("a"), locked("b")], making });
    const [a, b, ...none] = await calls();
    deepStrictEqual(none, []);
    for (const [call, name] of [[a, "a"], [b, "b"]] as const) {
      ok(call!.includes("|pip install --python /py --no-deps --require-hashes "), call!);
      ok(call!.includes(`--requirements /locks/${name}.txt `), call!);
      ok(call!.includes("--require-build-hashes"), call!);
    }
    deepStrictEqual([a, b].map((call) => call!.endsWith(" --compile-bytecode")), [false, true]);
  }));

Deno.test("Uv.install() stops at the lock that cannot be installed", () =>
  withUv(async ({ uv, making, calls }) => {
    const requirements = [locked("a"), locked("b")];
    await rejects(
      uv.install("/py", { requirements, making }),
      /^InfrastructureError: Cannot create the Python environment 'test' because the installation/,
    );
    strictEqual((await calls()).length, 1);
  }, 1));

Deno.test("Uv.finds() tries without installing, with one retry", () =>
  withUv(async ({ uv, making, calls }) => {
    const { success } = await uv.finds("/py", {
      locked: { ...locked("a"), args: ["--index", "x"] },
      making,
    });
    const [call] = await calls();
    deepStrictEqual([success, call!.endsWith("--requirements /locks/a.txt --dry-run")], [
      false,
      true,
    ]);
    ok(call!.startsWith("1 never|") && call!.includes(" --index x "), call!);
  }, 1));

Deno.test("Uv.compile() passes its arguments on as they are", () =>
  withUv(async ({ uv, making, calls }) => {
    await uv.compile(["--universal", "a.in"], making);
    ok((await calls())[0]!.endsWith("never|pip compile --universal a.in"));
  }));
