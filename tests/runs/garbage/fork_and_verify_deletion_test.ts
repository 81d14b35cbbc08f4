/**
 * What fork and verify remove, as `deletion_property_test.ts` looks at gc and at a run's stages.
 */
import { deepStrictEqual, ok } from "node:assert/strict";
import { basename } from "node:path";
import fc from "fast-check";
import { type EngineError, writeOwner } from "../../../engine/mod.ts";
import { forkRun, verifyRun } from "../../../runs/mod.ts";
import { createFakeRun, executeFake, fakeRedo, freshFakeHome } from "../fake_home.ts";

/**
 * A run that is done, the name and a file of its last checkpoint, and a directory outside that has
 * the same.
 */
const home = await freshFakeHome();
await createFakeRun(home, "a");
await executeFake(home, "a");
const head = (await home.store.head("a"))!;
const notes = await home.store.read("a", { kinds: ["note/checkpoint"] });
const saved = JSON.parse(notes.at(-1)!.value) as { dir: string; files: { path: string }[] };
const [name, file] = [basename(saved.dir), saved.files[0]!.path];
const outside = `${home.dir}-outside`;
for (const dir of [outside, `${outside}/${name}`]) {
  await Deno.mkdir(dir);
  await Deno.writeTextFile(`${dir}/${file}`, "precious");
}

Deno.test.afterAll(async () => {
  for (const dir of [home.dir, outside]) await Deno.remove(dir, { recursive: true });
});

const is = <T extends string>(...names: T[]) => fc.constantFrom(...names);
const id = fc.oneof(
  fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/),
  fc.stringMatching(/^a[a0._-]{1,3}$/), // What it is forked from is the beginning of it.
);
/** Who has checkpoints/ID; `link`: it leads outside. */
const owner = is("us", "us", "other", "nobody", "garbled", "link");
/** What lies there under the checkpoint's name, and beside it. */
const remains = is("nothing", "link", "file", "directory", "link_of_file", "link_of_folder");
const scene = fc.record({
  id,
  owner,
  remains: remains,
  linked: is("", "", "checkpoints", "runs", "runs/a"),
});
type Scene = typeof scene extends fc.Arbitrary<infer T> ? T : never;

async function leave(checkpointsDir: string, { id, owner, remains }: Scene): Promise<void> {
  if (owner === "link") return await Deno.symlink(outside, checkpointsDir);
  await Deno.mkdir(checkpointsDir);
  if (owner === "us") writeOwner(checkpointsDir, await home.owner(id));
  if (owner === "other") writeOwner(checkpointsDir, { ...await home.owner(id), run: "other" });
  if (owner === "garbled") await Deno.writeTextFile(`${checkpointsDir}/owner.json`, "{");
  const dir = `${checkpointsDir}/${name}`;
  if (remains === "link") await Deno.symlink(`${outside}/${name}`, dir);
  if (remains === "file") await Deno.writeTextFile(dir, "not a directory");
  if (!remains.startsWith("link_of_") && remains !== "directory") return;
  await Deno.mkdir(dir);
  if (remains === "link_of_file") await Deno.symlink(`${outside}/${file}`, `${dir}/${file}`);
  if (remains === "link_of_folder") await Deno.symlink(outside, `${dir}/state`);
}

/** Every file and link that is there, by its path: its inode, and what it says. */
function inventory(dir: string, found = new Map<string, string>()): Map<string, string> {
  for (const { name, isDirectory, isSymlink } of Deno.readDirSync(dir)) {
    const path = `${dir}/${name}`;
    if (isDirectory) inventory(path, found);
    else {found.set(
        path,
        `${Deno.lstatSync(path).ino} ${isSymlink ? "" : Deno.readTextFileSync(path)}`,
      );}
  }
  return found;
}

/** Whatever comes of it, nothing that was there is gone or another, but for what lies in `mine`. */
async function keepsAll(
  what: string,
  mine: string,
  work: () => Promise<unknown>,
): Promise<boolean> {
  const before = [...inventory(home.dir), ...inventory(outside)];
  const done = await work().then(() => true, (error: EngineError) => {
    ok(
      /^Cannot .*(because|as) /s.test(error.message) && error.code !== undefined,
      `${what}: ${error.stack}`,
    );
    return false;
  });
  const after = new Map([...inventory(home.dir), ...inventory(outside)]);
  for (const [path, file] of before) {
    ok(path.startsWith(`${mine}/`) || after.get(path) === file, `${what}: ${path}`);
  }
  return done;
}

Deno.test("fork and verify: whatever links are there, and whoever has the directories, nothing else goes or changes", async () => {
  const done = { fork: 0, verify: 0 };
  await fc.assert(
    fc.asyncProperty(scene, async (scene) => {
      if (await home.store.head(scene.id) !== null) return;
      const checkpointsDir = home.checkpointsDir(scene.id);
      await Deno.mkdir(`${home.dir}/checkpoints`, { recursive: true });
      await leave(checkpointsDir, scene);
      const [at, moved] = [`${home.dir}/${scene.linked}`, `${outside}/moved`];
      if (scene.linked !== "") {
        await Deno.rename(at, moved);
        await Deno.symlink(moved, at);
      }
      const mine = scene.linked === "checkpoints" ? `${moved}/${scene.id}` : checkpointsDir;
      const fork = () => forkRun(home, head, { round: 6, id: scene.id });
      const verify = () => verifyRun(home, head, { from: 6, workers: fakeRedo });
      if (await keepsAll(`fork ${JSON.stringify(scene)}`, mine, fork)) done.fork += 1;
      if (await keepsAll(`verify ${JSON.stringify(scene)}`, "-", verify)) done.verify += 1;
      if (scene.linked !== "") {
        await Deno.remove(at);
        await Deno.rename(moved, at);
      }
      await Deno.remove(checkpointsDir, { recursive: true }).catch(() => {});
    }),
    { numRuns: 25, endOnFailure: true },
  );
  deepStrictEqual([done.fork > 0, done.verify > 0], [true, true]);
});
