import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import {
  type DirectoryOwner,
  InvalidInputError,
  isOwnedBy,
  isOwnFolder,
  isUnused,
  makeDirectory,
  OWNER_FILE,
  ownerOf,
  writeOwner,
} from "../../../engine/mod.ts";

const OWNER: DirectoryOwner = { home: "h", store: "s", run: "a", place: "/homes/one" };

async function withHome(body: (home: string) => void): Promise<void> {
  const home = await Deno.realPath(await Deno.makeTempDir());
  try {
    body(home);
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

Deno.test("writeOwner() makes the directory, and ownerOf() reads it back", () =>
  withHome((home) => {
    const dir = `${home}/runs/a`;
    strictEqual(ownerOf(dir), null);
    writeOwner(dir, OWNER);
    writeOwner(dir, { ...OWNER, place: "/homes/two" });
    deepStrictEqual(ownerOf(dir), { ...OWNER, place: "/homes/two" });
    deepStrictEqual([...Deno.readDirSync(dir)].map(({ name }) => name), [OWNER_FILE]);
    strictEqual(Deno.statSync(dir).mode! & 0o777, 0o700);
    strictEqual(Deno.statSync(`${dir}/${OWNER_FILE}`).mode! & 0o777, 0o600);
  }));

Deno.test("ownerOf() is null where the file is damaged, or is not an owner", () =>
  withHome((home) => {
    for (const text of ["{", "[]", "{}", JSON.stringify({ ...OWNER, run: "../a" })]) {
      Deno.writeTextFileSync(`${home}/${OWNER_FILE}`, text);
      strictEqual(ownerOf(home), null, text);
    }
  }));

Deno.test("makeDirectory() names what is in its way", () =>
  withHome((home) => {
    Deno.writeTextFileSync(`${home}/file`, "");
    throws(() => makeDirectory(`${home}/file/runs`), (error) => {
      deepStrictEqual((error as InvalidInputError).facts, { dir: `${home}/file/runs` });
      return error instanceof InvalidInputError && error.message.includes("its path is blocked");
    });
  }));

Deno.test("isUnused() allows an owner and nothing else", () =>
  withHome((home) => {
    strictEqual(isUnused(`${home}/missing`), true);
    strictEqual(isUnused(home), true);
    writeOwner(home, OWNER);
    strictEqual(isUnused(home), true);
    Deno.writeTextFileSync(`${home}/rows.jsonl`, "");
    strictEqual(isUnused(home), false);
  }));

Deno.test("isOwnFolder() is false for a link out of the home", () =>
  withHome((home) => {
    for (const folder of ["mine", "shared"]) Deno.mkdirSync(`${home}/${folder}`);
    Deno.symlinkSync(`${home}/shared`, `${home}/linked`);
    deepStrictEqual(["mine", "missing", "linked"].map((folder) => isOwnFolder(home, folder)), [
      true,
      true,
      false,
    ]);
  }));

Deno.test("isOwnedBy() asks for the home and its place only where a folder is shared", () =>
  withHome((home) => {
    for (const folder of ["runs", "elsewhere"]) Deno.mkdirSync(`${home}/${folder}`);
    Deno.symlinkSync(`${home}/elsewhere`, `${home}/logs`);
    const owned = (found: Partial<DirectoryOwner>, folder: string) =>
      isOwnedBy({ ...OWNER, ...found }, OWNER, { home, folder });
    for (const folder of ["runs", "logs"]) {
      strictEqual(owned({}, folder), true);
      strictEqual(owned({ run: "b" }, folder), false);
      strictEqual(owned({ store: "other" }, folder), false);
    }
    for (const found of [{ home: "copy" }, { place: "/homes/copy" }]) {
      strictEqual(owned(found, "runs"), true);
      strictEqual(owned(found, "logs"), false);
    }
  }));
