import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { endAll, freshHome, rl } from "./fixtures.ts";
import { program } from "../../cli/main.ts";
import type { Command } from "commander";

Deno.test.afterAll(endAll);

/** Every verb and every verb below it. */
function verbs(command: Command): Command[] {
  return command.commands.flatMap((one) => [one, ...verbs(one)]);
}

Deno.test("help says what every verb, argument and option does", () => {
  const silent = [program(), ...verbs(program())].flatMap((command) => {
    const parts = [
      ...command.options.map(({ flags, description }) => [flags, description]),
      ...command.registeredArguments.map((argument) => [argument.name(), argument.description]),
      [command.name(), command.description()],
    ];
    return parts.filter(([, text]) => !text || text === "as above").map(([name]) => `${command.name()} ${name}`);
  });
  deepStrictEqual(silent, []);
});

Deno.test("--version prints the version of deno.json and of Deno", async () => {
  const { version } = JSON.parse(await Deno.readTextFile(new URL("../../deno.json", import.meta.url)));
  const { code, out } = await rl(["--version"]);
  deepStrictEqual([code, out.trim()], [0, `holdfast ${version} (deno ${Deno.version.deno})`]);
});

Deno.test("--id is refused by every verb that makes no run, before or after it", async () => {
  const home = await freshHome();
  const made = program().commands.filter(({ options }) => options.some(({ long }) => long === "--id"));
  deepStrictEqual(made.map((command) => command.name()).sort(), ["eval", "fork", "run"]);
  for (const args of [["show", "--id", "x"], ["--id", "x", "runs"]]) {
    const { code, err } = await rl([...args, "--home", home]);
    strictEqual(code, 2);
    match(err, /Cannot use --id with '(show|runs)' because it names a new run/);
  }
});
