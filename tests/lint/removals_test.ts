import { deepStrictEqual } from "node:assert/strict";
import plugin from "./removals.ts";

const ROOT = new URL("../../", import.meta.url).pathname;

/** How many findings the rule has in a file of this path. */
const found = (path: string, source: string) =>
  Deno.lint.runPlugin(plugin, `${ROOT}${path}`, source).length;

const REMOVING = [
  `await Deno.remove(dir, { recursive: true });`,
  `Deno.removeSync(dir, { recursive: true });`,
  `await Deno.remove(dir, options);`,
  `for (const name of names) await Deno.remove(name);`,
  `for await (const { name } of Deno.readDir(dir)) { if (old(name)) Deno.removeSync(name); }`,
  `while (names.length > 0) await Deno.remove(names.pop()).catch(() => {});`,
  `globalThis.Deno.removeSync(dir, { recursive: true });`,
  `await Deno["remove"](dir, { recursive: true });`,
  `const { remove } = Deno; await remove(dir, { recursive: true });`,
  `const { removeSync: gone } = Deno; gone(dir, { recursive: true });`,
  `import { rm } from "node:fs/promises"; await rm(dir, { recursive: true });`,
  `import { rmSync as gone } from "node:fs"; gone(dir);`,
  `import { rmdirSync } from "fs"; rmdirSync(dir);`,
  `import * as fs from "node:fs"; fs.rmSync(dir, { recursive: true });`,
  `import fs from "node:fs/promises"; await fs.rm(dir, { recursive: true });`,
  `await new Deno.Command("rm", { args: ["-rf", dir] }).output();`,
  `await run([python, "-m", "venv", "--clear", dir]);`,
  `await new Deno.Command("/bin/rm", { args: ["-rf", dir] }).output();`,
];
const HARMLESS = [
  `await Deno.remove(file);`,
  `Deno.removeSync(file);`,
  `const { readDir } = Deno; readDir(dir);`,
  `import { removeTree } from "./removal.ts"; await removeTree(dir, { home, named });`,
  `import { readdirSync } from "node:fs"; readdirSync(dir);`,
  `signals.remove(name, listener);`,
  `await new Deno.Command("ls").output();`,
];

Deno.test("the lint rule reports every way to remove a tree in a room of the product", () => {
  for (
    const room of [
      "engine/journal/reachable_artifacts.ts",
      "flows/stages/x.ts",
      "workers/x.ts",
      "cli/x.ts",
      "mod.ts",
      "examples/x.ts",
    ]
  ) {
    deepStrictEqual(
      REMOVING.map((source) => [source, found(room, source)]),
      REMOVING.map((source) => [source, 1]),
    );
    deepStrictEqual(
      HARMLESS.map((source) => [source, found(room, source)]),
      HARMLESS.map((source) => [source, 0]),
    );
  }
});

Deno.test("the lint rule leaves the one place alone, and tests and benches with their scratch directories", () => {
  for (const path of ["engine/files/removal.ts", "tests/flows/x_test.ts", "bench/x.ts"]) {
    deepStrictEqual(REMOVING.map((source) => found(path, source)), REMOVING.map(() => 0));
  }
});
