import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import type { Command } from "commander";
import { commandLine } from "../../cli/command_line.ts";
import { json, list, required, text } from "../../cli/options.ts";
import { defineVerb } from "../../cli/verb.ts";
import { inProcess } from "./in_process.ts";

/** Every verb and every verb below it. */
function verbs(command: Command): Command[] {
  return command.commands.flatMap((one) => [one, ...verbs(one)]);
}

Deno.test("help says what every verb, argument and option does", () => {
  const silent = [commandLine(), ...verbs(commandLine())].flatMap((command) => {
    const parts = [
      ...command.options.map(({ flags, description }) => [flags, description]),
      ...command.registeredArguments.map((argument) => [argument.name(), argument.description]),
      [command.name(), command.description()],
    ];
    return parts.filter(([, text]) => !text || text === "as above").map(([name]) =>
      `${command.name()} ${name}`
    );
  });
  deepStrictEqual(silent, []);
});

Deno.test("verbs that create no run refuse --id, before or after the verb", async () => {
  const home = await Deno.makeTempDir({ prefix: "command_line_test_" });
  const creating = commandLine().commands.filter(({ options }) =>
    options.some(({ long }) => long === "--id")
  );
  deepStrictEqual(creating.map((command) => command.name()).sort(), ["eval", "fork", "run"]);
  for (const args of [["show", "--id", "x"], ["--id", "x", "runs"]]) {
    const { code, err } = await inProcess([...args, "--home", home]);
    strictEqual(code, 2);
    match(err, /Cannot use --id with '(show|runs)' because it names a new run/);
  }
});

Deno.test("a verb receives its arguments by name and its options in snake_case", async () => {
  const calls: unknown[] = [];
  const verb = defineVerb({
    name: "weigh item",
    about: "weigh",
    arguments: { "<item>": "what", "[unit]": "in what", "[others...]": "more" },
    options: { json, per_day: list("<n>", "days"), as: required("<name>", "name"), to: DEFAULT },
    action({ args, flags }) {
      calls.push(args, flags);
    },
  });
  const weigh = (...args: string[]) =>
    commandLine([verb], { weigh: "weighs" }).parseAsync(["weigh", "item", ...args], {
      from: "user",
    });
  await weigh("stone", "--as", "x");
  deepStrictEqual(calls.splice(0), [{ item: "stone", unit: undefined, others: [] }, {
    as: "x",
    to: "rome",
  }]);
  await weigh("a", "b", "c", "d", "--per-day", "1", "--per-day", "2", "--as=y", "--json");
  deepStrictEqual(calls, [{ item: "a", unit: "b", others: ["c", "d"] }, {
    as: "y",
    to: "rome",
    json: true,
    per_day: ["1", "2"],
  }]);
});

const DEFAULT = text("<place>", "place", { default: "rome" });

Deno.test("a verb's number is the exit code; without one it is 0", async () => {
  const verb = (name: string, code?: number) =>
    defineVerb({
      name,
      about: name,
      arguments: {},
      options: {},
      action: () => Promise.resolve(code),
    });
  const verbs = [verb("good"), verb("bad", 3)];
  deepStrictEqual([
    (await inProcess(["good"], { verbs })).code,
    (await inProcess(["bad"], { verbs })).code,
  ], [0, 3]);
});
