import { deepStrictEqual } from "node:assert/strict";
import { namesIn } from "../../../runs/home/names_in.ts";
import { scratch } from "../../flows/fixtures.ts";

Deno.test("namesIn() lists a directory in order", async () => {
  const dir = await scratch();
  for (const name of ["b", "a.txt"]) await Deno.writeTextFile(`${dir}/${name}`, "");
  await Deno.mkdir(`${dir}/c/below`, { recursive: true });
  deepStrictEqual(await namesIn(dir), ["a.txt", "b", "c"]);
});

Deno.test("namesIn() finds nothing where there is no directory", async () => {
  const dir = await scratch();
  await Deno.writeTextFile(`${dir}/file`, "");
  await Deno.symlink("loop", `${dir}/loop`);
  for (const name of ["missing", "file", "file/below", "loop"]) {
    deepStrictEqual(await namesIn(`${dir}/${name}`), [], name);
  }
});
