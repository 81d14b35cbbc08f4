import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { FilesOnDisk, namesIn } from "../../../workers/environments/files_on_disk.ts";
import { collectCache } from "../../../workers/environments/uv_cache.ts";
import { withHome } from "../fixtures.ts";

/** A cache as uv 0.13 writes it, with two packages: an environment has a link to the first. */
async function twoPackages(home: string): Promise<string> {
  const cache = `${home}/cache`;
  await Deno.mkdir(`${home}/environment`);
  for (const [name, id] of [["numpy", "-Abc_1"], ["torch", "xYz2"]]) {
    await Deno.mkdir(`${cache}/archive-v0/${id}`, { recursive: true });
    await Deno.writeTextFile(`${cache}/archive-v0/${id}/module.py`, "12345");
    await Deno.mkdir(`${cache}/wheels-v8/pypi/${name}`, { recursive: true });
    const wheel = `${cache}/wheels-v8/pypi/${name}/1.0-py3-none-any`;
    await Deno.symlink(`../../../archive-v0/${id}`, wheel);
    await Deno.writeTextFile(`${wheel}.http`, "");
  }
  await Deno.link(`${cache}/archive-v0/-Abc_1/module.py`, `${home}/environment/module.py`);
  return cache;
}

Deno.test("collectCache() removes packages without a link elsewhere, and uv's names for them", () =>
  withHome(async (home) => {
    const cache = await twoPackages(home);
    const found = { count: 1, bytes: 5 };
    const collect = (dry_run: boolean) => collectCache(cache, { gone: new FilesOnDisk(), dry_run });
    deepStrictEqual(await collect(true), found);
    strictEqual(namesIn(`${cache}/archive-v0`).length, 2);
    deepStrictEqual(await collect(false), found);
    deepStrictEqual(namesIn(`${cache}/archive-v0`), ["-Abc_1"]);
    deepStrictEqual(namesIn(`${cache}/wheels-v8/pypi/torch`), []);
    deepStrictEqual(namesIn(`${cache}/wheels-v8/pypi/numpy`).sort(), [
      "1.0-py3-none-any",
      "1.0-py3-none-any.http",
    ]);
    deepStrictEqual(await collect(false), { count: 0, bytes: 0 });
  }));

Deno.test("collectCache() counts the files of environments that go with it", () =>
  withHome(async (home) => {
    const cache = await twoPackages(home);
    const gone = new FilesOnDisk();
    strictEqual(gone.add(`${home}/environment`), 0);
    deepStrictEqual(await collectCache(cache, { gone, dry_run: true }), { count: 2, bytes: 10 });
  }));

Deno.test("collectCache() leaves the cache alone while uv is at work", () =>
  withHome(async (home) => {
    const cache = await twoPackages(home);
    using lock = await Deno.open(`${cache}/.lock`, { write: true, create: true });
    await lock.lock(false); // Shared, as uv holds it.
    strictEqual(await collectCache(cache, { gone: new FilesOnDisk(), dry_run: false }), null);
    strictEqual(namesIn(`${cache}/archive-v0`).length, 2);
  }));
