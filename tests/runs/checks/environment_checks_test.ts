import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { InvalidInputError } from "../../../engine/mod.ts";
import { environmentChecks } from "../../../runs/checks/environment_checks.ts";
import { installedPackages } from "../../../workers/environments/installed_packages.ts";
import { completePlace, createOnce, placeOf } from "../../../workers/environments/create_once.ts";
import { basePython } from "../../../workers/environments/python_interpreter.ts";
import { runCommand } from "../../../workers/processes/run_command.ts";
import { PYTHON, withHome } from "../../workers/fixtures.ts";

const ROOT = new URL("../../../", import.meta.url).pathname;

/** An environment that has what requirement files lock, as far as `importlib.metadata` sees. */
async function installed(home: string, requirements: string[]): Promise<void> {
  const place = placeOf(home, { name: "torch_cpu", text: "", python: PYTHON });
  const make = (dir: string) => install(dir, { as: place.path, requirements });
  const check = () => Promise.resolve({ packages: {}, missing: [] });
  await createOnce(place, { onWait: () => {}, make, check });
}

async function install(
  dir: string,
  { as, requirements }: { as: string; requirements: string[] },
): Promise<void> {
  const files = requirements.map((name) =>
    Deno.readTextFile(`${ROOT}workers/python/requirements/${name}.txt`)
  );
  const text = (await Promise.all(files)).join("\n");
  for (const [, name, version] of text.matchAll(/^([\w.-]+)==(\S+)/gm)) {
    const info = `${dir}/${name!.replaceAll("-", "_")}-${version}.dist-info`;
    await Deno.mkdir(info, { recursive: true });
    await Deno.writeTextFile(
      `${info}/METADATA`,
      `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`,
    );
  }
  await Deno.mkdir(`${dir}/bin`, { recursive: true });
  await Deno.writeTextFile(
    `${dir}/bin/python`,
    `#!/bin/sh\nPYTHONPATH='${as}' exec python3 "$@"\n`,
    { mode: 0o755 },
  );
}

for (
  const { requirements, name } of [
    { requirements: ["pytorch_cpu", "torch"], name: "torch" },
    { requirements: ["pytorch_cuda", "torch"], name: "torch" },
    { requirements: ["pytorch_cpu", "deepspeed"], name: "deepspeed" },
    { requirements: ["vllm_cuda"], name: "vllm" },
    { requirements: ["vllm_cpu"], name: "vllm" },
  ]
) {
  const locks = requirements.join(" and ");
  Deno.test(`environmentChecks() finds ${name} in an environment of ${locks}`, () =>
    withHome(async (home) => {
      const of = async () =>
        (await environmentChecks(() => home)).find((check) => check.name === name)!;
      strictEqual((await of()).verdict, "WARN");
      await installed(home, requirements);
      const { verdict, says } = await of();
      strictEqual(verdict, "OK", says);
      ok(/^\d+\.\d+\.\d+/.test(says), says);
    }));
}

const named = async (dir: string, name: string) =>
  (await environmentChecks(() => dir)).filter((check) => check.name === name);

Deno.test("environmentChecks() lists environments, with their Python, size and use", () =>
  withHome(async (home) => {
    await installed(home, []);
    await Deno.mkdir(`${home}/vllm_cpu-cpython3.11-0123456789ab.0a1b2c3d.making`);
    const [unused, unfinished, ...none] = await named(home, "environment");
    deepStrictEqual(none, []);
    strictEqual(unused!.verdict, "OK");
    match(
      unused!.says,
      /^torch_cpu of Python 3\.11\.7 \(\S+\): 0\.0 GiB, made [\d-]+, last used [\d-]+; no run of this release uses it: /,
    );
    strictEqual(unfinished!.verdict, "WARN");
    match(
      unfinished!.says,
      /^vllm_cpu-cpython3\.11-0123456789ab\.0a1b2c3d\.making is not complete/,
    );
  }));

Deno.test("environmentChecks() says where environments will be, and what is wrong with it", () =>
  withHome(async (home) => {
    const [future] = await named(`${home}/a/b`, "environments");
    match(future!.says, new RegExp(`free at ${home}; none in ${home}/a/b yet$`));
    const [inFile] = await named(`${ROOT}README.md/env`, "environments");
    deepStrictEqual([inFile!.verdict, inFile!.fix], [
      "FAIL",
      "Set HOLDFAST_ENV_DIR to a directory",
    ]);
    const refused = () => {
      throw new InvalidInputError("Cannot tell because x. Fix: set it", {});
    };
    deepStrictEqual(await environmentChecks(refused), [{
      name: "environments",
      verdict: "FAIL",
      says: "Cannot tell because x",
      fix: "Fix: set it",
    }]);
  }));

Deno.test("environmentChecks() finds a damaged environment, which is then checked at its next use", () =>
  withHome(async (home) => {
    const place = placeOf(home, { name: "torch_cpu", text: "", python: PYTHON });
    const python = await basePython();
    const check = (path: string) => installedPackages(path, { packages: { tiny: "1.0" } });
    await createOnce(place, {
      onWait: () => {},
      make: async (path) => {
        await runCommand([python.path, "-m", "venv", "--without-pip", path]);
        const [lib] = [...Deno.readDirSync(`${path}/lib`)];
        const site = `${path}/lib/${lib!.name}/site-packages`;
        const info = `${site}/tiny-1.0.dist-info`;
        await Deno.mkdir(info);
        await Deno.writeTextFile(`${site}/tiny.py`, "");
        await Deno.writeTextFile(`${info}/METADATA`, "Name: tiny\nVersion: 1.0\n");
        await Deno.writeTextFile(`${info}/RECORD`, "tiny.py,,\ntiny-1.0.dist-info/METADATA,,\n");
      },
      check,
    });
    strictEqual((await named(home, "environment"))[0]!.verdict, "OK");
    const [lib] = [...Deno.readDirSync(`${place.path}/lib`)];
    await Deno.remove(`${place.path}/lib/${lib!.name}/site-packages/tiny.py`);
    const [damaged] = await named(home, "environment");
    deepStrictEqual([damaged!.verdict, damaged!.fix], [
      "FAIL",
      "The next run that needs it creates it again",
    ]);
    match(damaged!.says, /^torch_cpu of Python .* is damaged: it lacks tiny\.py of tiny$/);
    strictEqual(await completePlace(place, check), null);
  }));
