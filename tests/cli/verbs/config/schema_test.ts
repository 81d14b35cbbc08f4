import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { commandLine } from "../../../../cli/command_line.ts";
import { ROOT } from "../../fixtures.ts";
import { inProcess } from "../../in_process.ts";

Deno.test("config schema prints the schema that the repository holds", async () => {
  const { code, out } = await inProcess(["config", "schema"]);
  strictEqual(code, 0);
  const held = JSON.parse(await Deno.readTextFile(`${ROOT}configs/holdfast.schema.json`));
  deepStrictEqual(JSON.parse(out), held);
});

Deno.test("config schema reads no home and has no option for one", () => {
  const config = commandLine().commands.find((command) => command.name() === "config")!;
  const schema = config.commands.find((command) => command.name() === "schema")!;
  deepStrictEqual(schema.options.map(({ long }) => long), []);
});
