import { ok, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { costOf } from "../../../workers/mod.ts";
import { ensureTestEnvironments } from "../../environments.ts";

const REQUIREMENTS = fileURLToPath(
  new URL("../../../workers/python/requirements/", import.meta.url),
);

/** What is installed, by normal name. */
const PROBE = `
import json, re
from importlib.metadata import distributions
name = lambda d: re.sub(r"[-_.]+", "-", d.metadata["Name"]).lower()
print(json.dumps({name(d): d.version for d in distributions()}))
`;

const env = await ensureTestEnvironments();
const ENVIRONMENTS = [
  { python: env.HOLDFAST_TEST_PYTHON!, requirements: "torch" },
  { python: env.HOLDFAST_TEST_DEEPSPEED_PYTHON!, requirements: "deepspeed" },
  { python: env.HOLDFAST_TEST_VLLM_PYTHON!, requirements: "vllm_cpu" },
  { python: env.HOLDFAST_TEST_TRACKERS_PYTHON!, requirements: "trackers" },
  { python: env.HOLDFAST_TEST_HUB_PYTHON!, requirements: "hub" },
];

async function output(command: string, args: string[]): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(command, { args }).output();
  ok(success, new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

for (const { python, requirements } of ENVIRONMENTS) {
  Deno.test(`the environment of ${requirements}.txt has what is locked and its size`, async () => {
    const installed = JSON.parse(await output(python, ["-c", PROBE])) as Record<string, string>;
    const { torch, ...others } = installed;
    const text = await Deno.readTextFile(`${REQUIREMENTS}${requirements}.txt`);
    const locked = [...text.matchAll(/^([\w.-]+)==([\w.+]+)/gm)].map(([, name, version]) =>
      [name, version] as const
    );
    for (const [name, version] of Object.entries(others)) {
      const versions = locked.filter(([other]) => other === name).map(([, other]) => other);
      ok(
        versions.includes(version) || /^(nvidia-|cuda-|triton$)/.test(name),
        `${name} ${version} is not locked`,
      );
    }
    const build = torch?.endsWith("+cpu") ? "pytorch_cpu" : "pytorch_cuda";
    if (["trackers", "hub"].includes(requirements)) strictEqual(torch, undefined);
    else {
      const [pin] = /^torch==\S+/m.exec(await Deno.readTextFile(`${REQUIREMENTS}${build}.txt`))!;
      strictEqual(`torch==${torch}`, pin);
    }
    const dir = python.slice(0, -"/bin/python".length);
    const mib = Number((await output("du", ["-sm", "--exclude=__pycache__", dir])).split("\t")[0]);
    const { disk_mib } = costOf([...(torch === undefined ? [] : [build]), requirements]);
    ok(mib > 0.9 * disk_mib && mib < 1.1 * disk_mib, `${mib} MiB, not ${disk_mib}`);
  });
}

Deno.test("an environment for the CPU, with what makes it, takes less than 1.5 GB", () => {
  const { disk_mib } = costOf(["uv", "pytorch_cpu", "torch"]);
  ok(disk_mib * 2 ** 20 < 1.5e9);
});
