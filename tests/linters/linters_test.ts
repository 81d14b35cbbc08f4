/** Our Python under ruff. */
import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { ruff } from "./linters.ts";
import { inScratch } from "./scratch.ts";

Deno.test("ruff finds nothing in our Python, and would format nothing", async () => {
  const checked = await ruff([
    "check",
    "--no-cache",
    "--output-format",
    "concise",
    ".",
  ]);
  deepStrictEqual(checked, { code: 0, output: "All checks passed!\n" });
  const formatted = await ruff(["format", "--no-cache", "--check", "."]);
  strictEqual(formatted.code, 0, formatted.output);
  match(formatted.output, /^\d{3} files already formatted\n$/);
});

Deno.test("ruff finds an unused import, a long line and a file that is not formatted", async () => {
  const texts = {
    "a.py": `import os\n`,
    "b.py": `# ${"x".repeat(119)}\n`,
    "c.py": `a = {  1:2 }\n`,
  };
  await inScratch(texts, async (dir) => {
    const { code, output } = await ruff(
      ["check", "--no-cache", "--output-format", "concise", "."],
      dir,
    );
    strictEqual(code, 1);
    match(output, /a\.py:1:8: F401/);
    match(output, /b\.py:1:121: E501/);
    match(
      (await ruff(["format", "--no-cache", "--check", "."], dir)).output,
      /c\.py[^]*1 file would be reformatted, 2 files/,
    );
  });
});
