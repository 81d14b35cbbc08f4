import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { machineChecks } from "../../runs/mod.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** An environment that has what requirement files lock, as far as `importlib.metadata` sees. */
async function installed(home: string, requirements: string[]): Promise<void> {
  const dir = `${home}/env/made`;
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
  await Deno.mkdir(`${dir}/bin`);
  await Deno.writeTextFile(
    `${dir}/bin/python`,
    `#!/bin/sh\nPYTHONPATH='${dir}' exec python3 "$@"\n`,
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
  Deno.test(`machineChecks() finds ${name} in an environment of ${requirements.join(" and ")}`, async () => {
    const home = await Deno.makeTempDir({ prefix: "machine-checks-" });
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

Deno.test("machineChecks() names a home that cannot be, as it lies in a file", async () => {
  const disk = (await machineChecks(`${ROOT}README.md/a/home`)).find(({ name }) =>
    name === "disk"
  )!;
  deepStrictEqual([disk.verdict, disk.says], [
    "FAIL",
    `the home cannot be inside '${ROOT}README.md', which is a file`,
  ]);
});

Deno.test("machineChecks() says why a named store does not answer", async () => {
  const named = async (store?: string) =>
    (await machineChecks("nowhere", { store })).filter(({ name }) => name === "store").map((
      { verdict },
    ) => verdict);
  deepStrictEqual(await named(), []);
  deepStrictEqual(await named("postgres://nobody@127.0.0.1:1/none"), ["FAIL"]);
});
