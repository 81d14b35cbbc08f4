import { deepStrictEqual, match, ok } from "node:assert/strict";
import type { Check } from "../../../runs/mod.ts";
import { findPython } from "../../../workers/mod.ts";
import { endAll, json, rl, ROOT } from "../fixtures.ts";
import { at } from "../data_home.ts";

Deno.test.afterAll(endAll);

Deno.test("doctor tries isolation with the Python that makes environments, whatever is on PATH", async () => {
  const dir = await Deno.makeTempDir({ prefix: "cli_doctor_" });
  try {
    const { path } = await findPython();
    await Deno.symlink(path, `${dir}/own-python`);
    const { stdout } = await new Deno.Command(Deno.execPath(), {
      args: [
        "run",
        "-A",
        "--quiet",
        `${ROOT}cli/main.ts`,
        "doctor",
        "--json",
        "--home",
        `${dir}/home`,
      ],
      env: { PATH: dir, HOLDFAST_PYTHON: `${dir}/own-python` },
    }).output();
    const checks = JSON.parse(new TextDecoder().decode(stdout)) as Check[];
    const { says } = checks.find(({ name }) => name === "isolation")!;
    ok(!says.includes("no Python"), says);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("doctor gives each part of the machine a verdict, and a mend where it is not well", async () => {
  const checks = await json<{ name: string; verdict: string; says: string; fix: string | null }[]>([
    "doctor",
    ...at,
  ]);
  deepStrictEqual(checks.map(({ name }) => name).slice(0, 3), ["deno", "python", "torch"]);
  ok(checks.every(({ verdict, fix }) => (verdict === "OK") === (fix === null)));
  match((await rl(["doctor", ...at])).out, /^OK {4}deno /);
  const bare = await rl(["doctor", ...at], { PATH: "/nowhere", HOLDFAST_PYTHON: "" });
  deepStrictEqual([
    bare.code,
    /^FAIL {2}python +.*Python 3\.11 to 3\.14 is needed: none was found on PATH.*Fix: install one/m
      .test(bare.out),
  ], [3, true]);
});
