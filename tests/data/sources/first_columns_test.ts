import { deepStrictEqual } from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { firstColumns } from "../../../data/mod.ts";
import { rowHome } from "../row_home.ts";

const dir = await rowHome();

Deno.test("firstColumns() is the first row of the first file that has one", async () => {
  const at = async (name: string, bytes: Uint8Array | string) => {
    const text = typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes;
    await Deno.writeFile(`${dir}/${name}`, text);
    return await firstColumns({ path: `${dir}/${name}` });
  };
  deepStrictEqual(await at("a.jsonl", '\n{"prompt":1}\nno JSON\n'), { prompt: 1 });
  deepStrictEqual(await at("b.csv", "prompt\nx\n"), { prompt: "x" });
  const packed = gzipSync(new TextEncoder().encode('{"prompt":2}\n'));
  deepStrictEqual(await at("c.jsonl.gz", packed), { prompt: 2 });
  deepStrictEqual(await at("d.jsonl", "\n"), null);
  await Deno.writeTextFile(`${dir}/a.jsonl`, "");
  deepStrictEqual(await firstColumns({ path: dir }), { prompt: "x" });
});
