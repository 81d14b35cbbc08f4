import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import type { Command } from "commander";
import { program } from "../../cli/main.ts";
import { endAll, freshHome, leftOvers, rl } from "./fixtures.ts";
import { at, home } from "./data_home.ts";

Deno.test.afterAll(endAll);

Deno.test("what is no command, and an option that is none, are exit 2 with what was nearly meant", async () => {
  const command = await rl(["shwo", ...at]);
  deepStrictEqual([command.code, /'shwo'.*did you mean show/.test(command.err)], [2, true]);
  const option = await rl(["runs", "--jsn", ...at]);
  deepStrictEqual([option.code, /--jsn[\s\S]*--json/.test(option.err)], [2, true]);
  const number = await rl(["rollouts", "--round", "zero", ...at]);
  deepStrictEqual([number.code, /'zero' for --round.*whole number/.test(number.err)], [2, true]);
  strictEqual((await rl(["--help"])).code, 0);
});

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

Deno.test("all errors of a configuration are told at once, in its order, and nothing is recorded or started", async () => {
  const file = `${home}/bad.yaml`;
  await Deno.writeTextFile(
    file,
    `flow: quickstart
sed: 1
warmup: { rounds: 3, rows_per_round: -2 }
online: { rounds: 6, prompts_per_round: 8, samples_per_prompt: 1 }
algorithm: gpro
trainer: { engine: torch, ranks: 2 }
`,
  );
  const { code, out, err } = await rl(["run", file, "online.round=3", ...at]);
  deepStrictEqual([code, out], [2, ""]);
  const lines = err.trimEnd().split("\n");
  const told = [/bad\.yaml:2:1 .*sed.*did you mean seed/, /bad\.yaml:3:\d+ warmup\.rows_per_round/, /bad\.yaml:5:\d+/];
  for (const pattern of [...told, /bad\.yaml:6:\d+ trainer\.ranks/, /override online\.round.*did you mean/]) {
    ok(lines.some((line) => pattern.test(line)), `${pattern} in\n${err}`);
  }
  deepStrictEqual(await leftOvers(home), { runs: 0, processes: 0 });
});
