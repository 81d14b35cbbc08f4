import { deepStrictEqual, strictEqual, throws } from "node:assert/strict";
import { removeFile, RowCache } from "../../../data/rows/row_cache.ts";
import { rowHome } from "../row_home.ts";

const home = await rowHome();

Deno.test("RowCache is private, and removes only unfinished files of long ago", () => {
  const cache = new RowCache(`${home}/a`);
  cache.prepare();
  strictEqual(Deno.statSync(cache.dir).mode! & 0o777, 0o700);
  const [old, recent] = [cache.newPath(), cache.newPath()];
  const kept = [recent, cache.indexPath("k"), cache.unpackedPath("k")];
  for (const path of [old, ...kept]) Deno.writeTextFileSync(path, "");
  const long_ago = new Date(Date.now() - 48 * 3600 * 1000);
  for (const path of [old, kept[1]!]) Deno.utimeSync(path, long_ago, long_ago);
  cache.prepare();
  const names = [...Deno.readDirSync(cache.dir)].map(({ name }) => `${cache.dir}/${name}`);
  deepStrictEqual(names.sort(), kept.sort());
});

Deno.test("RowCache says where it cannot be made; removeFile() needs no file", () => {
  Deno.writeTextFileSync(`${home}/file`, "");
  throws(
    () => new RowCache(`${home}/file`).prepare(),
    /cache\/rows: Cannot keep the index of rows/,
  );
  removeFile(`${home}/none`);
  removeFile(`${home}/file`);
  throws(() => Deno.statSync(`${home}/file`), Deno.errors.NotFound);
});
