/**
 * Our Python under pyright (strict). A file that changed since the merge base has no more errors
 * than it had there, and a new file has none. Errors of other files are nobody's task.
 */
import { deepStrictEqual, notStrictEqual, ok, strictEqual } from "node:assert/strict";
import { git } from "../gate/git.ts";
import { pyright } from "./linters.ts";
import { inScratch } from "./scratch.ts";

type Errors = Record<string, number>;

/** Files with more errors than before. `changed`: each with its path at the base, if it had one. */
function worse(
  changed: ReadonlyMap<string, string | null>,
  now: Errors,
  before: Errors,
): string[] {
  return [...changed].flatMap(([path, old]) => {
    const [found, known] = [
      now[path] ?? 0,
      old === null ? 0 : before[old] ?? 0,
    ];
    return found > known ? [`${path}: ${found} errors, ${known} before`] : [];
  });
}

/** Where the work began: the merge base with `origin/main`; on that itself, the commit before. */
async function baseOfTheWork(): Promise<string> {
  const [head, base] = [
    await git("rev-parse", "HEAD"),
    await git("merge-base", "HEAD", "origin/main"),
  ];
  return base !== "" && base !== head ? base : await git("rev-parse", "HEAD^");
}

/** Python files that differ from the base, each with its path there; null if it is new. */
async function changedSince(base: string): Promise<Map<string, string | null>> {
  const tracked = await git(
    "diff",
    "--name-status",
    "-M",
    "--diff-filter=d",
    base,
    "--",
    "*.py",
  );
  const added = await git(
    "ls-files",
    "--others",
    "--exclude-standard",
    "--",
    "*.py",
  );
  const lines = tracked.split("\n").filter(Boolean).map((line) => line.split("\t"));
  return new Map([
    ...lines.map(([how, old, path]): [string, string | null] =>
      path === undefined ? [old!, how === "A" ? null : old!] : [path, old!]
    ),
    ...added.split("\n").filter(Boolean).map((
      path,
    ): [string, null] => [path, null]),
  ]);
}

/** pyright's errors in the Python of a commit. */
async function errorsAt(commit: string): Promise<Errors> {
  const dir = await Deno.realPath(
    await Deno.makeTempDir({ prefix: "holdfast-pyright-" }),
  );
  try {
    await git("archive", "--output", `${dir}/tree.tar`, commit);
    const { success } = await new Deno.Command("tar", {
      args: ["-xf", "tree.tar"],
      cwd: dir,
    }).output();
    ok(success, `git archive ${commit}`);
    return (await pyright(dir)).errors;
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("pyright, strict, finds no more in a changed file than before, and nothing in a new one", async () => {
  const base = await baseOfTheWork();
  notStrictEqual(
    base,
    "",
    "no commit to compare with: run this in a clone with its history",
  );
  const { files, errors } = await pyright();
  ok(files > 80, `only ${files} files were looked at`);
  deepStrictEqual(
    worse(await changedSince(base), errors, await errorsAt(base)),
    [],
  );
});

Deno.test("pyright finds a wrong type and a parameter without one", async () => {
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
  });
});

Deno.test("worse() names changed files with more errors, new ones with any, and follows a renamed one", () => {
  const changed = new Map([
    ["a.py", "a.py"],
    ["b.py", "b.py"],
    ["new.py", null],
    ["to.py", "from.py"],
  ]);
  deepStrictEqual(
    worse(changed, {
      "a.py": 2,
      "b.py": 1,
      "new.py": 1,
      "to.py": 3,
      "far.py": 9,
    }, {
      "a.py": 1,
      "b.py": 2,
      "from.py": 3,
    }),
    ["a.py: 2 errors, 1 before", "new.py: 1 errors, 0 before"],
  );
});
