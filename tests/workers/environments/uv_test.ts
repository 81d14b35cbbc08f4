import { deepStrictEqual, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { placeOf } from "../../../workers/environments/create_once.ts";
import { Creation } from "../../../workers/environments/creation.ts";
import { basePython } from "../../../workers/environments/python_interpreter.ts";
import { Uv } from "../../../workers/environments/uv.ts";
import { withHome } from "../fixtures.ts";

type Bench = {
  uv: Uv;
  creation: Creation;
  /** Arguments of each call of uv, with the value of some variables. */
  calls: () => Promise<string[]>;
};

/** A home with a uv that writes down how it was called, and exits with `code`. */
function withUv(body: (bench: Bench) => Promise<void>, code = 0): Promise<void> {
  return withHome(async (home) => {
    const python = await basePython();
    const { path } = await Uv.place(home, python);
    await Deno.mkdir(join(path, "bin"), { recursive: true });
    await Deno.symlink(python.path, join(path, "bin", "python"));
    const log = join(home, "calls");
    const script = `#!/bin/sh\necho "$UV_HTTP_RETRIES $UV_PYTHON_DOWNLOADS|$*" >> '${log}'\n` +
      `exit ${code}\n`;
    await Deno.writeTextFile(join(path, "bin", "uv"), script, { mode: 0o755 });
    const creation = new Creation(
      placeOf(home, { name: "test", text: "", python: python.build }),
      {},
    );
    const uv = await Uv.of(home, { python, creation: creation });
    const calls = async () => (await Deno.readTextFile(log)).trim().split("\n");
    await body({ uv, creation, calls });
  });
}

const locked = (name: string) => ({ file: pathToFileURL(`/locks/${name}.txt`) });

Deno.test("Uv.install() installs locks of the same index in one call, by their hashes", () =>
  withUv(async ({ uv, creation, calls }) => {
    await uv.install("/py", { requirements: [locked("a"), locked("b")], creation: creation });
    const [call, ...none] = await calls();
    deepStrictEqual(none, []);
    ok(call!.includes("|pip install --python /py --no-deps --require-hashes "), call!);
    ok(call!.includes("--requirements /locks/a.txt --requirements /locks/b.txt "), call!);
    ok(call!.includes("--require-build-hashes"), call!);
    ok(!call!.includes("--compile-bytecode"), call!);
  }));

Deno.test("Uv.install() installs locks of different indexes one by one, up to a failure", () =>
  withUv(async ({ uv, creation, calls }) => {
    const requirements = [{ ...locked("a"), args: ["--index", "x"] }, locked("b")];
    await rejects(
      uv.install("/py", { requirements, creation: creation }),
      /^InfrastructureError: Cannot create the Python environment 'test' because the installation/,
    );
    const [call, ...none] = await calls();
    deepStrictEqual(none, []);
    ok(call!.includes("--index x --requirements /locks/a.txt --preview"), call!);
  }, 1));

Deno.test("Uv.venv() makes an environment that may be renamed", () =>
  withUv(async ({ uv, creation, calls }) => {
    const python = await basePython();
    await uv.venv("/env.making", { python, creation: creation });
    const [call] = await calls();
    ok(call!.endsWith(` --relocatable --no-project --python ${python.path} /env.making`), call!);
  }));

Deno.test("Uv.finds() tries without installing, with one retry", () =>
  withUv(async ({ uv, creation, calls }) => {
    const { success } = await uv.finds("/py", {
      locked: { ...locked("a"), args: ["--index", "x"] },
      creation: creation,
    });
    const [call] = await calls();
    deepStrictEqual([success, call!.endsWith("--requirements /locks/a.txt --dry-run")], [
      false,
      true,
    ]);
    ok(call!.startsWith("1 never|") && call!.includes(" --index x "), call!);
  }, 1));

Deno.test("Uv.compile() passes its arguments on as they are", () =>
  withUv(async ({ uv, creation, calls }) => {
    await uv.compile(["--universal", "a.in"], creation);
    ok((await calls())[0]!.endsWith("never|pip compile --universal a.in"));
  }));
