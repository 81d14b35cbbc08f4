import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { endAll, remains, rl } from "./fixtures.ts";
import { at, home } from "./data_home.ts";

Deno.test.afterAll(endAll);

Deno.test("unknown commands and options exit 2 with a suggestion", async () => {
  const command = await rl(["shwo", ...at]);
  deepStrictEqual([command.code, /'shwo'.*did you mean show/.test(command.err)], [2, true]);
  const option = await rl(["runs", "--jsn", ...at]);
  deepStrictEqual([option.code, /--jsn[\s\S]*--json/.test(option.err)], [2, true]);
  const number = await rl(["rollouts", "--round", "zero", ...at]);
  deepStrictEqual([number.code, /'zero' for --round.*whole number/.test(number.err)], [2, true]);
  strictEqual((await rl(["--help"])).code, 0);
});

Deno.test("--version prints the version of deno.json and of Deno", async () => {
  const { version } = JSON.parse(
    await Deno.readTextFile(new URL("../../deno.json", import.meta.url)),
  );
  const { code, out } = await rl(["--version"]);
  deepStrictEqual([code, out.trim()], [0, `holdfast ${version} (deno ${Deno.version.deno})`]);
});

Deno.test("all of a configuration's errors are printed at once, in its order", async () => {
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
  const messages = [
    /bad\.yaml:2:1 .*sed.*did you mean seed/,
    /bad\.yaml:3:\d+ warmup\.rows_per_round/,
    /bad\.yaml:5:\d+/,
  ];
  for (
    const pattern of [
      ...messages,
      /bad\.yaml:6:\d+ trainer\.ranks/,
      /override online\.round.*did you mean/,
    ]
  ) {
    ok(lines.some((line) => pattern.test(line)), `${pattern} in\n${err}`);
  }
  deepStrictEqual(await remains(home), { runs: 0, processes: 0 });
});
