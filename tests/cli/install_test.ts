import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { dirname } from "node:path";
import { parsePage } from "../docs/markdown.ts";
import { ROOT } from "./fixtures.ts";

Deno.test("the command of the page installs `holdfast`, which works in a directory that has nothing", async () => {
  const { blocks } = parsePage(await Deno.readTextFile(`${ROOT}docs/getting_started.md`));
  const shown = blocks.map(({ text }) => text.trim()).filter((text) =>
    text.startsWith("deno install ")
  );
  strictEqual(shown.length, 1);
  const [, verb, ...args] = shown[0]!.split(" ");
  const dir = await Deno.makeTempDir({ prefix: "holdfast-install-" });
  const env = { NO_COLOR: "1", PATH: `${dirname(Deno.execPath())}:${Deno.env.get("PATH")}` };
  const run = async (command: string, args: string[], cwd: string) => {
    const { code, stdout, stderr } = await new Deno.Command(command, { args, cwd, env }).output();
    const text = new TextDecoder();
    return { code, out: text.decode(stdout), err: text.decode(stderr) };
  };
  try {
    const installed = await run(Deno.execPath(), [verb!, "--root", dir, ...args], ROOT);
    strictEqual(installed.code, 0, installed.err);
    await Deno.mkdir(`${dir}/empty`);
    const holdfast = (...args: string[]) => run(`${dir}/bin/holdfast`, args, `${dir}/empty`);
    const version = await holdfast("--version");
    match(version.out, /^holdfast \d+\.\d+\.\d+ \(deno /, version.err);
    const plan = await holdfast("plan", `${ROOT}configs/quickstart_small.yaml`);
    strictEqual(plan.code, 0, plan.err);
    ok(plan.out.includes("generate_slab"));
    deepStrictEqual([...Deno.readDirSync(`${dir}/empty`)], [], "neither needs a home");
    const lock = async (path: string) =>
      Object.entries((JSON.parse(await Deno.readTextFile(path))).npm);
    const [own, ours] = [
      await lock(`${dir}/bin/.holdfast/deno.lock`),
      new Map(await lock(`${ROOT}deno.lock`)),
    ];
    deepStrictEqual(
      own,
      own.map(([name]) => [name, ours.get(name)]),
      "it takes the packages of our lock",
    );
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
