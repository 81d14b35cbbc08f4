import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { gzipSync } from "node:zlib";
import { sourceFiles } from "../../../data/mod.ts";
import { nameContent } from "../../../data/sources/json_lines.ts";
import { RowCache } from "../../../data/rows/row_cache.ts";
import { isUnpacked, UnpackedFile } from "../../../data/sources/unpacked_file.ts";
import { rowHome } from "../row_home.ts";

const home = await rowHome();
const cache = new RowCache(home);

async function unpacked(name: string, bytes: Uint8Array | string) {
  const path = `${home}/${name}`;
  await Deno.writeFile(path, typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes);
  const [file] = await sourceFiles({ path });
  strictEqual(isUnpacked(file!), true);
  const reader = new UnpackedFile(cache);
  try {
    for await (const piece of reader.piecesOf(file!)) strictEqual(piece.length > 0, true);
    const { content, bytes } = await reader.finish();
    const kept = cache.unpackedPath(content);
    deepStrictEqual(await nameContent(kept), { content, bytes });
    strictEqual(Deno.statSync(kept).mode! & 0o777, 0o600);
    return await Deno.readTextFile(kept);
  } finally {
    reader.close();
  }
}

Deno.test("UnpackedFile has one JSON line per row, and text lines as they are", async () => {
  strictEqual(await unpacked("a.csv", 'p,q\n"x\ny",\n'), '{"p":"x\\ny","q":null}\n');
  const text = '{"prompt": "é"}\r\n\n{"prompt": "b"}';
  strictEqual(await unpacked("a.jsonl.gz", gzipSync(new TextEncoder().encode(text))), text);
});

Deno.test("UnpackedFile leaves nothing of a file that it cannot read", async () => {
  const before = [...Deno.readDirSync(cache.dir)].length;
  await rejects(unpacked("b.csv", "p,q\n1\n"), /not CSV/);
  strictEqual([...Deno.readDirSync(cache.dir)].length, before);
});
