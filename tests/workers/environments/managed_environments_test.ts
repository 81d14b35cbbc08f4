import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { basename } from "node:path";
import { collectEnvironments, managedEnvironments } from "../../../workers/mod.ts";
import { usedPlaces } from "../../../workers/environments/environments.ts";
import { namesIn } from "../../../workers/environments/files_on_disk.ts";
import { createOnce, placeOf } from "../../../workers/environments/create_once.ts";
import { PYTHON, withHome } from "../fixtures.ts";

const NOW = Date.now() + 7_200_000;
const collect = (dir: string, options: { dry_run?: boolean; younger_than_ms?: number } = {}) =>
  collectEnvironments({ dir, younger_than_ms: 3_600_000, now_ms: NOW, ...options });

const older = (dir: string) => placeOf(dir, { name: "torch_cpu", text: "older", python: PYTHON });

/** Makes an environment of 5 bytes that a lock of an older release named. */
async function unused(dir: string) {
  const place = older(dir);
  await createOnce(place, {
    onWait: () => {},
    check: () => Promise.resolve({ packages: {}, missing: [] }),
    make: async (path) => {
      await Deno.mkdir(`${path}/bin`, { recursive: true });
      await Deno.symlink("/bin/sleep", `${path}/bin/python`);
      await Deno.writeTextFile(`${path}/module.py`, "12345");
    },
  });
  await Deno.writeTextFile(`${place.path}.log`, "");
  return place;
}

/** Puts what `unused` made where this release wants one. */
async function used(dir: string): Promise<string> {
  const wanted = (await usedPlaces(dir, PYTHON)).find((path) => path.includes("torch_cpu"))!;
  await Deno.rename((await unused(dir)).path, wanted);
  return wanted;
}

Deno.test("managedEnvironments() tells used from unused and incomplete ones", () =>
  withHome(async (dir) => {
    deepStrictEqual(await managedEnvironments(`${dir}/none`), []);
    const wanted = await used(dir);
    const { path } = await unused(dir);
    await Deno.mkdir(`${path}.0a1b2c3d.making`);
    await Deno.mkdir(`${dir}/a_folder_of_somebody`);
    const found = (await managedEnvironments(dir)).map(({ path, facts, used }) =>
      [basename(path), facts?.name ?? null, used] as const
    );
    deepStrictEqual(
      found,
      [
        [basename(wanted), "torch_cpu", true],
        [basename(path), "torch_cpu", false],
        [`${basename(path)}.0a1b2c3d.making`, null, false],
      ].sort(),
    );
  }));

Deno.test("collectEnvironments() removes the unused and leftovers, and nothing else", () =>
  withHome(async (dir) => {
    const wanted = await used(dir);
    const { path } = await unused(dir);
    const [factsFile, packages] = [`${path}/holdfast.json`, `${path}/packages.json`];
    const facts = (await Deno.stat(factsFile)).size + (await Deno.stat(packages)).size;
    await Deno.mkdir(`${path}.0a1b2c3d.making`);
    await Deno.writeTextFile(`${path}.0a1b2c3d.making/half`, "123");
    await Deno.mkdir(`${dir}/.removing-${crypto.randomUUID()}`);
    await Deno.mkdir(`${dir}/a_folder_of_somebody`);
    const before = namesIn(dir);
    const dry = await collect(dir, { dry_run: true });
    deepStrictEqual(namesIn(dir), before);
    const done = await collect(dir);
    deepStrictEqual(done, dry);
    deepStrictEqual([done.environments, done.leftovers, done.bytes, done.kept], [
      { count: 1, bytes: 5 + facts },
      { count: 2, bytes: 3 },
      8 + facts,
      [],
    ]);
    deepStrictEqual(
      namesIn(dir).sort(),
      [basename(wanted), `${basename(path)}.lock`, "a_folder_of_somebody"].sort(),
    );
  }));

Deno.test("collectEnvironments() removes one whose Python is gone", () =>
  withHome(async (dir) => {
    const wanted = await used(dir);
    await Deno.remove(`${wanted}/bin/python`);
    await Deno.symlink("/no/such/python", `${wanted}/bin/python`);
    strictEqual((await collect(dir)).leftovers.count, 1);
  }));

Deno.test("collectEnvironments() keeps what was asked for lately, and what is being created", () =>
  withHome(async (dir) => {
    const { path } = await unused(dir);
    const why = async (younger_than_ms: number) =>
      (await collect(dir, { younger_than_ms })).kept.map(({ why }) => why);
    match((await why(10_800_000)).join(), /^it was used at 2\d{3}-/);
    using lock = await Deno.open(`${path}.lock`, { write: true });
    await lock.lock(true);
    deepStrictEqual(await why(0), ["it is being created"]);
    strictEqual((await Deno.stat(path)).isDirectory, true);
  }));

Deno.test("collectEnvironments() keeps what a process uses, also one that came by a link", () =>
  withHome(async (dir) => {
    await Deno.symlink(dir, `${dir}/link`);
    for (const way of [dir, `${dir}/link`]) {
      const { path } = await unused(dir);
      const python = `${older(way).path}/bin/python`;
      const child = new Deno.Command(python, { args: ["60"] }).spawn();
      try {
        const { kept } = await collect(way);
        deepStrictEqual(kept, [{
          environment: basename(path),
          why: `process ${child.pid} uses it`,
        }]);
      } finally {
        child.kill("SIGKILL");
        await child.status;
      }
    }
    strictEqual((await collect(dir)).environments.count, 1);
  }));
