import { ok } from "node:assert/strict";
import type { Check } from "../../runs/mod.ts";
import { findPython } from "../../workers/mod.ts";
import { ROOT } from "./fixtures.ts";

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
