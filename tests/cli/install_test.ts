import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { dirname } from "node:path";
import { parsePage } from "../docs/markdown.ts";
import { ROOT } from "./fixtures.ts";

Deno.test("the command of the page installs `holdfast`, which works in a directory that has nothing", async () => {
  const { blocks } = parsePage(await Deno.readTextFile(`${ROOT}docs/getting_started.md`));
  const shown = blocks.map(({ text }) => text.trim()).filter((text) => / install\b/.test(text));
  deepStrictEqual(shown, ["deno task install"]);
  const home = await Deno.makeTempDir({ prefix: "holdfast-install-" });
  const env = {
    HOME: home,
    DENO_DIR: (await denoInfo()).denoDir,
    NO_COLOR: "1",
    PATH: "/usr/bin:/bin", // The command knows its Deno.
  };
  const run = async (command: string, args: string[], cwd: string) => {
    const spawned = new Deno.Command(command, { args, cwd, env, clearEnv: true });
    const { code, stdout, stderr } = await spawned.output();
    const text = new TextDecoder();
    return { code, out: text.decode(stdout), err: text.decode(stderr) };
  };
  const lock = await Deno.readTextFile(`${ROOT}deno.lock`);
  const path = `${home}/.local/bin/holdfast`;
  try {
    for (const _again of [false, true]) {
      const installed = await run(Deno.execPath(), ["task", "--quiet", "install"], ROOT);
      strictEqual(installed.code, 0, installed.err);
      ok(installed.out.includes(`Fix: export PATH='${dirname(path)}':"$PATH"`), installed.out);
    }
    await Deno.mkdir(`${home}/empty`);
    const holdfast = (...args: string[]) => run(path, args, `${home}/empty`);
    const version = await holdfast("--version");
    match(version.out, /^holdfast \d+\.\d+\.\d+ \(deno /, version.err);
    const plan = await holdfast("plan", `${ROOT}configs/quickstart_small.yaml`);
    strictEqual(plan.code, 0, plan.err);
    ok(plan.out.includes("generate_slab"));
    deepStrictEqual([...Deno.readDirSync(`${home}/empty`)], [], "neither needs a home");
    strictEqual(await Deno.readTextFile(`${ROOT}deno.lock`), lock);
    await Deno.writeTextFile(path, "#!/bin/sh\n");
    const other = await run(Deno.execPath(), ["task", "--quiet", "install"], ROOT);
    strictEqual(other.code, 2);
    match(other.err, /^Cannot write .*\/holdfast because it is a different program\. Fix: /);
    strictEqual(await Deno.readTextFile(path), "#!/bin/sh\n");
  } finally {
    await Deno.remove(home, { recursive: true });
  }
});

/** Where this Deno has its packages: a new HOME would download them. */
async function denoInfo(): Promise<{ denoDir: string }> {
  const { stdout } = await new Deno.Command(Deno.execPath(), { args: ["info", "--json"] }).output();
  return JSON.parse(new TextDecoder().decode(stdout));
}
