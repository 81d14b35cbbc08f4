import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { RemovalRefusedError, removeTree } from "../../../engine/mod.ts";

const OURS = { named: /own-\d+/, owner: null };

/** A home with `runs/a/own-1/file`, beside a directory `outside` that looks the same. */
async function places(): Promise<{ home: string; outside: string }> {
  const dir = await Deno.makeTempDir({ prefix: "removal_test_" });
  for (const root of ["home", "outside"]) {
    await Deno.mkdir(`${dir}/${root}/runs/a/own-1/deep`, { recursive: true });
    await Deno.writeTextFile(`${dir}/${root}/runs/a/own-1/deep/file`, root);
  }
  return { home: `${dir}/home`, outside: `${dir}/outside` };
}

const exists = (path: string) => Deno.lstat(path).then(() => true, () => false);
const names = (dir: string) => Array.from(Deno.readDirSync(dir), ({ name }) => name).sort();

async function refused(path: string, home: string, why: RegExp): Promise<void> {
  await rejects(removeTree(path, { home, ...OURS }), (error: Error) => {
    ok(error instanceof RemovalRefusedError, String(error));
    match(error.message, why);
    return true;
  });
}

Deno.test("removeTree() removes a directory with all in it, or nothing", async () => {
  const { home } = await places();
  const path = `${home}/runs/a/own-1`;
  strictEqual(await removeTree(path, { home, ...OURS, dry_run: true }), true);
  ok(await exists(`${path}/deep/file`));
  strictEqual(await removeTree(path, { home, ...OURS }), true);
  deepStrictEqual(names(`${home}/runs/a`), []);
  for (const missing of [path, `${home}/runs/b/own-1`, `${home}/logs/a/own-1`]) {
    strictEqual(await removeTree(missing, { home, ...OURS }), false);
  }
});

Deno.test("removeTree() refuses what is not strictly inside the home", async () => {
  const { home, outside } = await places();
  const paths = [
    `${outside}/runs/a/own-1`,
    `${home}/../outside/runs/a/own-1`,
    `${home}/runs/../../outside/runs/a/own-1`,
    `${home}x/runs/own-1`,
    `${home}/own-1`, // A first-level folder is the home's, no run's.
    home,
    `${home}/..`,
    "/",
    "",
  ];
  for (const path of paths) await refused(path, home, /not inside|not a name that Holdfast uses/);
  await refused(`${home}/runs/a/own-1`, "", /not inside ''/);
  ok(
    await exists(`${outside}/runs/a/own-1/deep/file`) &&
      await exists(`${home}/runs/a/own-1/deep/file`),
  );
});

Deno.test("removeTree() refuses every name that does not match its pattern", async () => {
  const { home } = await places();
  for (const name of ["mine", "own-1-copy", "my-own-1", "own-1\n", ".own-1", "own-"]) {
    await Deno.mkdir(`${home}/runs/a/${name}`, { recursive: true });
    await refused(`${home}/runs/a/${name}`, home, /is not a name that Holdfast uses/);
    ok(await exists(`${home}/runs/a/${name}`));
  }
});

Deno.test("removeTree() follows no link: at the path, on the way, or inside", async () => {
  const { home, outside } = await places();
  await Deno.symlink(`${outside}/runs/a/own-1`, `${home}/runs/a/own-2`);
  await refused(`${home}/runs/a/own-2`, home, /it is a link/);
  await Deno.symlink(`${outside}/runs/a`, `${home}/runs/b`);
  await refused(`${home}/runs/b/own-1`, home, /reached through a link/);
  await Deno.symlink(`${outside}/runs`, `${home}/runs/a/own-1/deep/linked`);
  strictEqual(await removeTree(`${home}/runs/a/own-1`, { home, ...OURS }), true);
  strictEqual(await Deno.readTextFile(`${outside}/runs/a/own-1/deep/file`), "outside");
});

Deno.test("removeTree() accepts a home or a first-level folder that is a link", async () => {
  const { home, outside } = await places();
  await Deno.symlink(`${outside}/runs`, `${home}/env`);
  await Deno.mkdir(`${outside}/runs/own-3`);
  strictEqual(await removeTree(`${home}/env/own-3`, { home, ...OURS }), true);
  deepStrictEqual(names(`${outside}/runs`), ["a"]);
  await Deno.symlink(home, `${outside}/link`);
  strictEqual(
    await removeTree(`${outside}/link/runs/a/own-1`, { home: `${outside}/link`, ...OURS }),
    true,
  );
  deepStrictEqual(names(`${home}/runs/a`), []);
});

Deno.test("removeTree() puts back what has taken the place between its two looks", async () => {
  const { home, outside } = await places();
  const path = `${home}/runs/a/own-1`;
  for (const swap of ["directory", "link"] as const) {
    const rename = Deno.renameSync;
    let swapped = false;
    Deno.renameSync = (from, to) => {
      if (!swapped) {
        swapped = true;
        rename(path, `${home}/moved-${swap}`);
        if (swap === "link") Deno.symlinkSync(`${outside}/runs/a/own-1`, path);
        else {
          Deno.mkdirSync(path);
          Deno.writeTextFileSync(`${path}/theirs`, "theirs");
        }
      }
      rename(from, to);
    };
    try {
      await refused(path, home, /something else has replaced it/);
    } finally {
      Deno.renameSync = rename;
    }
    deepStrictEqual(names(`${home}/runs/a`), ["own-1"]);
    if (swap === "directory") strictEqual(await Deno.readTextFile(`${path}/theirs`), "theirs");
    await Deno.remove(path, { recursive: true });
    await Deno.rename(`${home}/moved-${swap}`, path);
  }
  ok(await exists(`${outside}/runs/a/own-1/deep/file`));
});

Deno.test("removeTree() finishes a removal that was killed after moving it aside", async () => {
  const { home } = await places();
  const renamed = `${home}/runs/a/.removing-${crypto.randomUUID()}`;
  await Deno.rename(`${home}/runs/a/own-1`, renamed);
  strictEqual(await removeTree(`${home}/runs/a/own-1`, { home, ...OURS }), false);
  deepStrictEqual(names(`${home}/runs/a`), []);
});
