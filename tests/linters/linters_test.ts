/**
 * Our Python under ruff and pyright (strict). `pyright.json` holds the errors of files that were
 * written before; they may only fall, and a file that is not in it has none:
 * `deno test -A tests/linters -- --record` lowers it.
 */
import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { pyright, ruff } from "./linters.ts";

const RECORD = new URL("./pyright.json", import.meta.url);
const ROOT = new URL("../../", import.meta.url);

/** What is wrong with each file whose count is not the recorded one. */
function verdicts(errors: Record<string, number>, recorded: Record<string, number>): string[] {
  const paths = [...new Set([...Object.keys(errors), ...Object.keys(recorded)])].toSorted();
  return paths.flatMap((path) => {
    const [found, known] = [errors[path] ?? 0, recorded[path] ?? 0];
    if (found > known) return [`${path}: ${found} errors, and may have ${known}`];
    return found < known ? [`${path}: ${found} errors, recorded ${known}. Lower the record`] : [];
  });
}

async function inScratch(
  texts: Record<string, string>,
  body: (dir: string) => Promise<void>,
): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "holdfast-linters-" });
  try {
    const settings = await Deno.readTextFile(new URL("pyproject.toml", ROOT));
    await Deno.writeTextFile(`${dir}/pyproject.toml`, settings);
    await Deno.mkdir(`${dir}/workers/python`, { recursive: true });
    for (const [path, text] of Object.entries(texts)) {
      await Deno.writeTextFile(`${dir}/${path}`, text);
    }
    await body(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("ruff finds nothing in our Python, and would format nothing", async () => {
  const checked = await ruff(["check", "--no-cache", "--output-format", "concise", "."]);
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

Deno.test("pyright, strict, finds what the record says of each file", async () => {
  const recorded = JSON.parse(await Deno.readTextFile(RECORD)) as Record<string, number>;
  const { files, errors } = await pyright();
  ok(files > 80, `only ${files} files were looked at`);
  if (Deno.args.includes("--record")) {
    const lower = Object.keys(recorded).toSorted().map((path): [string, number] => [
      path,
      Math.min(recorded[path]!, errors[path] ?? 0),
    ]);
    const kept = Object.fromEntries(lower.filter(([, count]) => count > 0));
    await Deno.writeTextFile(RECORD, JSON.stringify(kept, null, 2) + "\n");
    deepStrictEqual(verdicts(errors, kept), []);
  } else deepStrictEqual(verdicts(errors, recorded), []);
});

Deno.test("pyright finds a wrong type and a parameter without one in a file that is new", async () => {
  const texts = {
    "workers/python/a.py": `def f(x):\n    return x\n`,
    "workers/python/b.py": `n: int = "1"\n`,
    "workers/python/c.py": `n: int = 1\n`,
  };
  await inScratch(texts, async (dir) => {
    const { files, errors } = await pyright(await Deno.realPath(dir));
    strictEqual(files, 3);
    deepStrictEqual(Object.keys(errors).toSorted(), ["workers/python/a.py", "workers/python/b.py"]);
    strictEqual(errors["workers/python/b.py"], 1);
    strictEqual(verdicts(errors, {}).length, 2);
  });
});

Deno.test("verdicts() refuses more errors, fewer errors, and errors of a file that is not recorded", () => {
  deepStrictEqual(verdicts({ "a.py": 2, "b.py": 1, "c.py": 1 }, { "a.py": 2, "b.py": 2 }), [
    "b.py: 1 errors, recorded 2. Lower the record",
    "c.py: 1 errors, and may have 0",
  ]);
  deepStrictEqual(verdicts({}, { "a.py": 1 }), ["a.py: 0 errors, recorded 1. Lower the record"]);
});
