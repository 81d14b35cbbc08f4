import { deepStrictEqual, match, rejects, strictEqual, throws } from "node:assert/strict";
import {
  claimOutput,
  isWritten,
  refuseOthersOutput,
  removeUnfinished,
  writeOutput,
} from "../../../flows/files/output_directory.ts";
import { scratch } from "../fixtures.ts";
import { Preparing } from "../stages/preparation/preparing.ts";

const owner = (run: string, store = "s") => ({ home: "h", store, run, place: "/home" });
const names = async (dir: string) =>
  (await Array.fromAsync(Deno.readDir(dir), ({ name }) => name)).toSorted();

Deno.test("a directory is a run's own once it has written there, and no other's", async () => {
  const dir = `${await scratch()}/deep/out`;
  refuseOthersOutput(dir, null);
  claimOutput(dir, owner("a"));
  deepStrictEqual(await names(dir), ["owner.json"]);
  // Nothing was written: a run that failed early holds no directory.
  refuseOthersOutput(dir, null);
  claimOutput(dir, owner("b"));
  await Deno.writeTextFile(`${dir}/train.parquet`, "");
  claimOutput(dir, owner("b"));
  const refused = /because it has the data of run 'b'\. Fix: set `output`/;
  throws(() => claimOutput(dir, owner("a")), refused);
  throws(() => claimOutput(dir, owner("b", "other store")), refused);
  throws(() => refuseOthersOutput(dir, null), refused);
  deepStrictEqual(await names(dir), ["owner.json", "train.parquet"]);
});

Deno.test("a directory with other files, or a file, is refused and stays as it is", async () => {
  const dir = await scratch();
  await Deno.writeTextFile(`${dir}/thesis.txt`, "mine");
  throws(() => claimOutput(dir, owner("a")), /because it has other files, such as 'thesis\.txt'/);
  throws(() => claimOutput(`${dir}/thesis.txt`, owner("a")), /because it is a file/);
  deepStrictEqual(await names(dir), ["thesis.txt"]);
});

Deno.test("a run does not start to read if its output is someone else's", async () => {
  const run = await Preparing.of({ "a.jsonl": [{ prompt: "a" }], "out/b.txt": "mine" }, {
    inputs: [{ path: "DIR/a.jsonl" }],
  });
  match(await run.failure(), /Cannot write prepared data to .*out because it has other files/);
  strictEqual([...run.moments].some((moment) => moment.includes("read_input")), false);
});

Deno.test("writeOutput() shows a file whole, or leaves nothing of it", async () => {
  const dir = await scratch();
  const bytes = new TextEncoder().encode("whole");
  await writeOutput({ dir, name: "a.parquet" }, async (file) => {
    await file.write(bytes);
    deepStrictEqual((await names(dir)).map((name) => name.replace(/[0-9a-f]{16}/, "N")), [
      ".a.parquet.N.unfinished",
    ]);
  });
  strictEqual(await isWritten(`${dir}/a.parquet`, 5), true);
  strictEqual(await isWritten(`${dir}/a.parquet`, 4), false);
  strictEqual(await isWritten(`${dir}/b.parquet`, 4), false);
  const broken = writeOutput({ dir, name: "b.parquet" }, () => Promise.reject(new Error("disk")));
  await rejects(broken, /disk/);
  deepStrictEqual(await names(dir), ["a.parquet"]);
});

Deno.test("removeUnfinished() removes only what a preparation was writing", async () => {
  const dir = await scratch();
  const unfinished = ".train.parquet.0123456789abcdef.unfinished";
  for (const name of [unfinished, ".unfinished", "x.unfinished", `a${unfinished}`]) {
    await Deno.writeTextFile(`${dir}/${name}`, "");
  }
  await Deno.mkdir(`${dir}/.dir.0123456789abcdef.unfinished`);
  await removeUnfinished(dir);
  deepStrictEqual(await names(dir), [
    ".dir.0123456789abcdef.unfinished",
    ".unfinished",
    `a${unfinished}`,
    "x.unfinished",
  ]);
});
