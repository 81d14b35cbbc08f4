import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import {
  BadDataError,
  InfrastructureError,
  sha256Hex,
  UserCodeError,
} from "../../../engine/mod.ts";
import {
  asidePath,
  firstProblem,
  makeRoomFor,
  mayBeDamage,
  moveAside,
  problemBehind,
  problemText,
} from "../../../workers/trainer/checkpoint_files.ts";
import { withHome } from "../fixtures.ts";

const shaOf = (text: string) => sha256Hex(new TextEncoder().encode(text));
const FILES = [{ path: "a", sha256: shaOf("one") }, { path: "sub/b", sha256: shaOf("two") }];

async function checkpoint(dir: string, texts: { a?: string; b?: string }): Promise<void> {
  await Deno.mkdir(`${dir}/sub`, { recursive: true });
  if (texts.a !== undefined) await Deno.writeTextFile(`${dir}/a`, texts.a);
  if (texts.b !== undefined) await Deno.writeTextFile(`${dir}/sub/b`, texts.b);
}

Deno.test("firstProblem() is null for whole files and names the first that is not", () =>
  withHome(async (dir) => {
    await checkpoint(dir, { a: "one", b: "two" });
    strictEqual(await firstProblem(dir, FILES), null);
    await checkpoint(dir, { b: "twO" });
    deepStrictEqual(await firstProblem(dir, FILES), {
      file: "sub/b",
      expected: shaOf("two"),
      found: shaOf("twO"),
    });
  }));

Deno.test("firstProblem() finds nothing where a file or its directory is missing", () =>
  withHome(async (dir) => {
    const missing = { file: "a", expected: shaOf("one"), found: null };
    deepStrictEqual(await firstProblem(`${dir}/none`, FILES), missing);
    await Deno.mkdir(`${dir}/a`); // A directory where a file was.
    deepStrictEqual(await firstProblem(dir, FILES), missing);
  }));

Deno.test("problemBehind() reads files only for errors that damage may cause", () =>
  withHome(async (dir) => {
    const place = { dir: `${dir}/none`, files: FILES };
    const found = (error: unknown) => problemBehind(error, place).then((problem) => problem?.file);
    strictEqual(await found(new BadDataError("x")), "a");
    strictEqual(await found(new InfrastructureError("x")), "a");
    strictEqual(await found(new UserCodeError("x")), undefined);
    strictEqual(mayBeDamage(new Error("x")), false);
  }));

Deno.test("problemText() tells a missing file from a changed one", () => {
  const problem = { file: "a", expected: "e".repeat(64), found: "f".repeat(64) };
  strictEqual(problemText({ ...problem, found: null }), "a is missing");
  strictEqual(
    problemText(problem),
    `a is not what was saved: its sha256 is ${"f".repeat(12)}, recorded ${"e".repeat(12)}`,
  );
});

Deno.test("moveAside() moves a checkpoint beside the others, and may be called again", () =>
  withHome(async (home) => {
    const dir = `${home}/checkpoints/4`;
    const to = asidePath(dir);
    strictEqual(to, `${home}/checkpoints/set_aside/4`);
    await checkpoint(dir, { a: "one" });
    await moveAside({ dir, to });
    await moveAside({ dir, to });
    strictEqual(await Deno.readTextFile(`${to}/a`), "one");
    await rejects(Deno.stat(dir), Deno.errors.NotFound);
  }));

Deno.test("makeRoomFor() sets files aside in place of a directory and of its parent", () =>
  withHome(async (home) => {
    const dir = `${home}/exports/last`;
    deepStrictEqual(await makeRoomFor(dir), []);
    await Deno.writeTextFile(`${home}/exports`, "in the way");
    const [parent, ...none] = await makeRoomFor(dir);
    deepStrictEqual([parent!.from, none], [`${home}/exports`, []]);
    match(parent!.to, /\/set_aside\/exports-[0-9a-f]{8}$/);
    strictEqual(await Deno.readTextFile(parent!.to), "in the way");
    await Deno.mkdir(`${home}/exports`);
    await Deno.writeTextFile(dir, "again");
    deepStrictEqual((await makeRoomFor(dir)).map(({ from }) => from), [dir]);
  }));

Deno.test("makeRoomFor() leaves directories and links where they are", () =>
  withHome(async (home) => {
    await Deno.mkdir(`${home}/real/last`, { recursive: true });
    await Deno.symlink(`${home}/real`, `${home}/link`);
    await Deno.writeTextFile(`${home}/file`, "");
    await Deno.symlink(`${home}/file`, `${home}/real/linked`);
    for (const dir of ["real/last", "link/last", "real/linked"]) {
      deepStrictEqual(await makeRoomFor(`${home}/${dir}`), []);
    }
  }));
