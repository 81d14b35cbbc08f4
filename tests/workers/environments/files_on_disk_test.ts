import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { bytesBelow } from "../../../workers/mod.ts";
import { FilesOnDisk, namesIn, removeFile } from "../../../workers/environments/files_on_disk.ts";
import { withHome } from "../fixtures.ts";

/** `one` and `two` share a file of 5 bytes; `two` has one of 7 more, and a link to a directory. */
async function shared(home: string): Promise<void> {
  for (const name of ["one", "two/deep"]) await Deno.mkdir(`${home}/${name}`, { recursive: true });
  await Deno.writeTextFile(`${home}/one/a`, "12345");
  await Deno.link(`${home}/one/a`, `${home}/two/deep/a`);
  await Deno.writeTextFile(`${home}/two/b`, "1234567");
  await Deno.symlink(`${home}/one`, `${home}/two/link`);
}

Deno.test("FilesOnDisk counts a file when its last link is added", () =>
  withHome(async (home) => {
    await shared(home);
    const files = new FilesOnDisk();
    strictEqual(files.linkedElsewhere(`${home}/two`), true);
    strictEqual(files.add(`${home}/one`), 0);
    strictEqual(files.linkedElsewhere(`${home}/two`), false);
    strictEqual(files.add(`${home}/two`), 12);
    strictEqual(files.add(`${home}/none`), 0);
  }));

Deno.test("bytesBelow() counts a file once, and follows no link", () =>
  withHome(async (home) => {
    await shared(home);
    await Deno.link(`${home}/two/b`, `${home}/two/c`);
    strictEqual(bytesBelow(`${home}/two`), 12);
  }));

Deno.test("namesIn() and removeFile() take what is gone for nothing", () =>
  withHome(async (home) => {
    deepStrictEqual(namesIn(`${home}/none`), []);
    await removeFile(`${home}/none`);
    await Deno.writeTextFile(`${home}/a`, "");
    deepStrictEqual(namesIn(home), ["a"]);
    await removeFile(`${home}/a`);
    deepStrictEqual(namesIn(home), []);
  }));
