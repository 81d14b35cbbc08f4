import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { type Check, machineChecks } from "../../cli/doctor.ts";
import { findPython } from "../../workers/mod.ts";
import { ROOT } from "./fixtures.ts";

/** An environment that has what requirement files lock, as far as `importlib.metadata` sees. */
async function installed(home: string, requirements: string[]): Promise<void> {
  const dir = `${home}/env/made`;
  const files = requirements.map((name) => Deno.readTextFile(`${ROOT}workers/python/requirements/${name}.txt`));
  const text = (await Promise.all(files)).join("\n");
  for (const [, name, version] of text.matchAll(/^([\w.-]+)==(\S+)/gm)) {
    const info = `${dir}/${name!.replaceAll("-", "_")}-${version}.dist-info`;
    await Deno.mkdir(info, { recursive: true });
    await Deno.writeTextFile(`${info}/METADATA`, `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`);
  }
  await Deno.mkdir(`${dir}/bin`);
  await Deno.writeTextFile(`${dir}/bin/python`, `#!/bin/sh\nPYTHONPATH='${dir}' exec python3 "$@"\n`, { mode: 0o755 });
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
  Deno.test(`doctor finds ${name} in an environment of ${requirements.join(" and ")}`, async () => {
    const home = await Deno.makeTempDir({ prefix: "cli_doctor_" });
    try {
      const before = (await machineChecks(home)).find((check) => check.name === name)!;
      strictEqual(before.verdict, "WARN");
      await installed(home, requirements);
      const { verdict, says } = (await machineChecks(home)).find((check) => check.name === name)!;
      strictEqual(verdict, "OK", says);
      ok(/^\d+\.\d+\.\d+/.test(says), says);
    } finally {
      await Deno.remove(home, { recursive: true });
    }
  });
}

Deno.test("doctor tries isolation with the Python that makes environments, whatever is on PATH", async () => {
  const dir = await Deno.makeTempDir({ prefix: "cli_doctor_" });
  try {
    const { path } = await findPython();
    await Deno.symlink(path, `${dir}/own-python`);
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--quiet", `${ROOT}cli/main.ts`, "doctor", "--json", "--home", `${dir}/home`],
      env: { PATH: dir, HOLDFAST_PYTHON: `${dir}/own-python` },
    }).output();
    const checks = JSON.parse(new TextDecoder().decode(stdout)) as Check[];
    const { says } = checks.find(({ name }) => name === "isolation")!;
    ok(!says.includes("no Python"), says);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("doctor names a home that cannot be, as it lies in a file", async () => {
  const disk = (await machineChecks(`${ROOT}README.md/a/home`)).find(({ name }) => name === "disk")!;
  deepStrictEqual([disk.verdict, disk.says], ["FAIL", `the home cannot lie in '${ROOT}README.md', which is a file`]);
});
