/** Adding a verb takes two files: its own, and the table's line. */
import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { commandLine } from "../../../cli/command_line.ts";
import { VERBS } from "../../../cli/verbs/table.ts";
import { copyTree, denoIn, differing } from "../../copy_tree.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { countVerb } from "./count_verb.ts";
import { ROOT } from "../fixtures.ts";
import { inProcess } from "../in_process.ts";

const verbs = [...VERBS, countVerb];

Deno.test("a new verb runs with its arguments and options as it declares them", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  await executeFake(home, "a");
  const { length } = await home.store.read("a");
  ok(length > 3);
  const run = (...args: string[]) => inProcess(["count", ...args], { home, verbs });
  deepStrictEqual(await run("a"), { code: 0, out: `run a has ${length} rows\n`, err: "" });
  const { code, out } = await run("a", "--json", "--at-most", "3");
  deepStrictEqual([code, JSON.parse(out)], [3, { run: "a", rows: length }]);
  const bad = await run("a", "--at-most", "few");
  strictEqual(bad.code, 2);
  match(bad.err, /^Cannot use 'few' for --at-most: give a whole number of at least 1$/m);
  strictEqual((await run("b")).code, 2);
  strictEqual((await run("a", "--id", "x")).code, 2, "it does not create a run");
});

Deno.test("a new verb has help", () => {
  const rl = commandLine(verbs);
  match(rl.helpInformation(), /^ {2}count \[options\] <run> +count the rows of a run's journal$/m);
  const help = rl.commands.find((command) => command.name() === "count")!.helpInformation();
  match(help, /^Usage: rl count \[options\] <run>$/m);
  match(help, /^ {2}run +the run's id$/m);
  match(help, /^ {2}--at-most <n> +fail if there are more$/m);
});

Deno.test("a new verb joins with two files: its own, and the table with its line", async () => {
  const dir = `${await Deno.makeTempDir({ prefix: "holdfast-verb-" })}/`;
  try {
    await copyTree(ROOT, dir);
    const source = await Deno.readTextFile(new URL("count_verb.ts", import.meta.url));
    const there = source.replaceAll("../../../cli/", "../").replaceAll("../../../", "../../");
    await Deno.writeTextFile(`${dir}cli/verbs/count.ts`, there);
    const table = await Deno.readTextFile(`${dir}cli/verbs/table.ts`);
    const line = `import { countVerb } from "./count.ts";\n`;
    const listed = table.replace("\n  configShowVerb,", "$&\n  countVerb,");
    await Deno.writeTextFile(`${dir}cli/verbs/table.ts`, line + listed);
    deepStrictEqual(await differing(ROOT, dir), ["cli/verbs/count.ts", "cli/verbs/table.ts"]);
    const args = ["run", "-A", "--quiet", "--no-check", "cli/main.ts"];
    const { ok: found, output } = await denoIn(dir, [...args, "count", "a", "--home", "home"]);
    deepStrictEqual([found, output.match(/^Cannot find run 'a' in .*home/)?.length], [false, 1]);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
