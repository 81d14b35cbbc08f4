import { deepStrictEqual, rejects, strictEqual, throws } from "node:assert/strict";
import { PictureFile } from "../../cli/picture_file.ts";
import { scratch } from "../flows/fixtures.ts";

const names = async (dir: string) =>
  (await Array.fromAsync(Deno.readDir(dir))).map(({ name }) => name);

Deno.test("PictureFile refuses what exists, a directory, and a directory that does not exist", async () => {
  const dir = await scratch();
  await Deno.writeTextFile(`${dir}/a.svg`, "old");
  throws(() => new PictureFile(`${dir}/a.svg`), /Cannot write .*a\.svg because it exists.*--force/);
  throws(() => new PictureFile(dir, { force: true }), /because it is a directory/);
  throws(() => new PictureFile(`${dir}/none/a.svg`), /directory does not exist. Fix: mkdir -p /);
  throws(() => new PictureFile(`${dir}/a.svg/b.svg`), /Cannot write .* because not a directory/i);
  await new PictureFile(`${dir}/a.svg`, { force: true }).write("new");
  strictEqual(await Deno.readTextFile(`${dir}/a.svg`), "new");
});

Deno.test("PictureFile replaces no link, pipe or device, and takes names as long as a file's may be", async () => {
  const dir = await scratch();
  await Deno.writeTextFile(`${dir}/target`, "old");
  await Deno.symlink(`${dir}/target`, `${dir}/link`);
  await Deno.symlink(`${dir}/loop`, `${dir}/loop`);
  for (const path of [`${dir}/link`, `${dir}/loop`, "/dev/null"]) {
    throws(() => new PictureFile(path, { force: true }), /because it is not a regular file/);
  }
  throws(() => new PictureFile(`${dir}/loop/a.svg`), /Cannot write .* because .*symbolic links/);
  throws(() => new PictureFile(`${dir}/${"n".repeat(256)}`), /Cannot write .* name too long/);
  await new PictureFile(`${dir}/${"n".repeat(255)}`).write("new");
  deepStrictEqual((await names(dir)).sort(), ["link", "loop", "n".repeat(255), "target"]);
});

Deno.test("PictureFile leaves a file that was written in the meantime, and nothing of its own", async () => {
  const dir = await scratch();
  const file = new PictureFile(`${dir}/a.svg`);
  await Deno.writeTextFile(`${dir}/a.svg`, "another's");
  await rejects(file.write("ours"), /because it exists/);
  strictEqual(await Deno.readTextFile(`${dir}/a.svg`), "another's");
  deepStrictEqual(await names(dir), ["a.svg"]);
});
