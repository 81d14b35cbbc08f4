/**
 * Our Python under pyright (strict). `pyright.json` holds the errors of files that were written
 * before; they may only fall, and a file that is not in it has none:
 * `deno test -A tests/linters/pyright_test.ts -- --record` lowers it.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { pyright } from "./linters.ts";
import { inScratch } from "./scratch.ts";

const RECORD = new URL("./pyright.json", import.meta.url);

/** What is wrong with each file whose count is not the recorded one. */
function verdicts(
  errors: Record<string, number>,
  recorded: Record<string, number>,
): string[] {
  const paths = [...new Set([...Object.keys(errors), ...Object.keys(recorded)])]
    .toSorted();
  return paths.flatMap((path) => {
    const [found, known] = [errors[path] ?? 0, recorded[path] ?? 0];
    if (found > known) {
      return [`${path}: ${found} errors, and may have ${known}`];
    }
    return found < known ? [`${path}: ${found} errors, recorded ${known}. Lower the record`] : [];
  });
}

Deno.test("pyright, strict, finds what the record says of each file", async () => {
  const recorded = JSON.parse(await Deno.readTextFile(RECORD)) as Record<
    string,
    number
  >;
  const { files, errors } = await pyright();
  ok(files > 80, `only ${files} files were looked at`);
  if (Deno.args.includes("--record")) {
    const lower = Object.keys(recorded).toSorted().map((
      path,
    ): [string, number] => [
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
    deepStrictEqual(Object.keys(errors).toSorted(), [
      "workers/python/a.py",
      "workers/python/b.py",
    ]);
    strictEqual(errors["workers/python/b.py"], 1);
    strictEqual(verdicts(errors, {}).length, 2);
  });
});

Deno.test("verdicts() refuses more errors, fewer errors, and errors of a file that is not recorded", () => {
  deepStrictEqual(
    verdicts({ "a.py": 2, "b.py": 1, "c.py": 1 }, { "a.py": 2, "b.py": 2 }),
    [
      "b.py: 1 errors, recorded 2. Lower the record",
      "c.py: 1 errors, and may have 0",
    ],
  );
  deepStrictEqual(verdicts({}, { "a.py": 1 }), [
    "a.py: 0 errors, recorded 1. Lower the record",
  ]);
});
