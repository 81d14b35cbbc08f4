/**
 * A home and its journals know each other, and a run's directories say whose they are: nobody
 * removes another's files.
 */
import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { z } from "zod";
import { ArtifactStore, graph, ownerOf, processOwner, writeOwner } from "../../../engine/mod.ts";
import { MemoryStore } from "../../../testing/mod.ts";
import {
  collectGarbage,
  createRun,
  executeRun,
  forkRun,
  Home,
  verifyRun,
} from "../../../runs/mod.ts";
import { homeNonce } from "../../../workers/mod.ts";
import { scratch } from "../../flows/fixtures.ts";

const NOTHING = graph("nothing", z.object({ trainer: z.any() }), (g) => g.constant(1));
const ALL = { younger_than_ms: -60_000 };
const LEFTOVER = "000002-0123456789ab-1-1";

const create = (home: Home, id: string) =>
  createRun(home, NOTHING, { config: { trainer: {} }, entry: `${import.meta.url}#nothing`, id });
const leftover = (home: Home, run: string) => `${home.checkpointsDir(run)}/${LEFTOVER}`;
const exists = (path: string) => Deno.stat(path).then(() => true, () => false);

/**
 * A run that is done, with an artifact that it refers to, a checkpoint that it has recorded and one
 * that came to nothing.
 */
async function done(home: Home, id: string) {
  const head = await create(home, id);
  const wanted = await home.artifacts.putJson({ of: id });
  const { epoch } = (await home.store.claim(id, processOwner(), { lease_ms: 60_000 })).head;
  const dir = `${home.checkpointsDir(id)}/000001-0123456789ab-1-1`;
  const rest = { digest: "", world_size: 1, files: [], number: 1, round: 1, metric: null };
  await home.store.append(id, epoch, [
    {
      kind: "note/checkpoint",
      key: "0123456789ab",
      value: JSON.stringify({ version: "0123456789ab", dir, ...rest }),
    },
    { kind: "result", key: "x", value: JSON.stringify(wanted) },
  ]);
  await home.store.finish(id, epoch, "done");
  for (const path of [dir, leftover(home, id), home.runDir(id)]) {
    await Deno.mkdir(path, { recursive: true });
  }
  return { wanted, head };
}

async function open(dir?: string): Promise<Home> {
  return Home.open(dir ?? await scratch());
}

/** The home with an empty database in place of its own. */
async function withoutJournal(home: Home): Promise<Home> {
  await home.close();
  for (const name of ["", "-wal", "-shm"]) {
    await Deno.remove(`${home.dir}/holdfast.db${name}`).catch(() => {});
  }
  return await open(home.dir);
}

/** Without owners and identities, as a person may leave it. */
async function asOlder(home: Home): Promise<Home> {
  await home.close();
  const db = new DatabaseSync(`${home.dir}/holdfast.db`);
  db.exec("UPDATE runs SET home = NULL");
  db.close();
  for (const name of ["nonce", "stores"]) await Deno.remove(`${home.dir}/${name}`).catch(() => {});
  for (const folder of ["runs", "checkpoints", "logs"]) {
    for (const { name } of Deno.readDirSync(`${home.dir}/${folder}`)) {
      for (const file of ["owner.json", "journal.json"]) {
        await Deno.remove(`${home.dir}/${folder}/${name}/${file}`).catch(() => {});
      }
    }
  }
  await Deno.remove(`${home.artifacts.dir}/journals`, { recursive: true });
  return await open(home.dir);
}

async function refuses(home: Home, why: RegExp): Promise<void> {
  for (const dry_run of [true, false]) {
    await rejects(collectGarbage(home, { ...ALL, dry_run }), (error: Error) => {
      match(
        error.message,
        /^Cannot tell which of \d+ (artifacts|files) in .* are still needed because .*Fix: /,
      );
      match(error.message, why);
      return true;
    });
  }
}

Deno.test("gc refuses a home whose journal was lost or replaced", async () => {
  let home = await open();
  const { wanted } = await done(home, "a");
  home = await withoutJournal(home);
  await refuses(
    home,
    /holdfast\.db \(journal [0-9a-f]{32}\) keep files here too, and that journal is not open/,
  );
  // The home goes on with the new journal, which does not make up for the old one.
  await done(home, "b");
  await refuses(home, /that journal is not open/);
  await Deno.remove(`${home.dir}/stores`);
  await refuses(
    home,
    /runs\/a belongs to a run that is in no open journal \(its journal is [0-9a-f]{32}\)/,
  );
  ok(
    await home.artifacts.has(wanted) && await exists(leftover(home, "a")) &&
      await exists(leftover(home, "b")),
  );
  await home.close();
});

Deno.test("gc refuses an older home whose journal is younger than its files", async () => {
  let home = await asOlder(
    await open().then(async (created) => (await done(created, "a"), created)),
  );
  home = await withoutJournal(home);
  await refuses(home, /runs\/a belongs to a run that is in no open journal\. Fix/);
  await Deno.remove(`${home.dir}/runs/a`, { recursive: true });
  const artifact = home.artifacts.path(await home.artifacts.putJson({ of: "a" }));
  const unknown =
    /artifacts were put before this home's first run, into a journal that is not known/;
  await refuses(home, unknown);
  await done(home, "b"); // The home goes on with a new journal, which does not make up for it.
  await refuses(home, unknown);
  ok(await exists(artifact) && await exists(leftover(home, "a")));
  await home.close();
});

Deno.test("gc of a home with a new journal goes through where nothing is at stake", async () => {
  let home = await open();
  await create(home, "a");
  home = await withoutJournal(home);
  strictEqual((await collectGarbage(home, ALL)).bytes, 0);
  await home.close();
});

Deno.test("the id of a run that has files here is refused as one that exists", async () => {
  const home = await open();
  await done(home, "a");
  await Deno.writeTextFile(`${home.runDir("a")}/metrics.jsonl`, "");
  const exists = /^Cannot create run 'a' because it already exists: choose a different --id$/;
  await rejects(create(home, "a"), { code: "invalid_input", message: exists });
  await home.close();
});

Deno.test("a run id is refused while its directories hold other files", async () => {
  let home = await open();
  await done(home, "a");
  home = await withoutJournal(home);
  await rejects(
    create(home, "a"),
    /\/a for run 'a' because it belongs to run 'a' of .*Fix: choose another --id/,
  );
  for (const folder of ["runs", "checkpoints"]) {
    await Deno.remove(`${home.dir}/${folder}/a/owner.json`);
  }
  await rejects(
    create(home, "a"),
    /checkpoints\/a for run 'a' because it contains files of a run that is not in this journal/,
  );
  // What a file system answers that takes 'B' and 'b' for one name.
  await done(home, "b");
  await Deno.symlink("b", `${home.dir}/checkpoints/B`);
  await rejects(create(home, "B"), /checkpoints\/B for run 'B' because it belongs to run 'b' of /);
  deepStrictEqual((await home.store.heads()).map(({ id }) => id), ["b"]);
  await home.close();
});

Deno.test("two homes with one linked directory leave each other's files alone", async () => {
  const [one, other] = [await open(), await open()];
  await done(one, "a");
  await Deno.remove(`${other.dir}/checkpoints`);
  await Deno.symlink(`${one.dir}/checkpoints`, `${other.dir}/checkpoints`);
  await rejects(create(other, "a"), /checkpoints\/a for run 'a' because it belongs to run 'a' of /);
  await done(other, "b");
  strictEqual((await collectGarbage(other, ALL)).checkpoints.count, 1);
  deepStrictEqual([await exists(leftover(one, "a")), await exists(leftover(other, "b"))], [
    true,
    false,
  ]);
  await Deno.mkdir(leftover(other, "b"));
  strictEqual((await collectGarbage(one, ALL)).checkpoints.count, 1);
  deepStrictEqual([await exists(leftover(one, "a")), await exists(leftover(other, "b"))], [
    false,
    true,
  ]);
  for (const home of [one, other]) await home.close();
});

Deno.test("homes that share a journal leave each other's runs alone", async () => {
  const store = new MemoryStore();
  const [one, other] = await Promise.all([1, 2].map(async () => {
    const dir = await scratch();
    return new Home(dir, {
      store,
      artifacts: new ArtifactStore(`${dir}/artifacts`),
      postgres: "postgres://db/runs",
    });
  })) as [Home, Home];
  const { wanted, head } = await done(one, "a");
  await done(other, "b");
  await Deno.symlink(one.checkpointsDir("a"), other.checkpointsDir("a"));
  const report = await collectGarbage(other, { ...ALL, rows: true });
  deepStrictEqual([report.checkpoints.count, report.artifacts.count, report.kept], [1, 0, []]);
  const elsewhere =
    /run 'a' in .* because its files are in a different home: .*Fix: name the run's home/;
  const there = NOTHING.build({ trainer: {} });
  for (
    const attempt of [
      () => collectGarbage(other, { runs: ["a"] }),
      () => executeRun(other, { head, graph: there }),
      () => forkRun(other, head, { round: 1 }),
      () => verifyRun(other, head),
    ]
  ) await rejects(attempt(), elsewhere);
  ok(await exists(leftover(one, "a")) && await one.artifacts.has(wanted));
  strictEqual((await collectGarbage(one, ALL)).checkpoints.count, 1);
});

Deno.test("gc says that it leaves linked and unrecorded directories", async () => {
  let home = await open();
  await done(home, "a");
  await create(home, "b");
  await Deno.mkdir(leftover(home, "b"), { recursive: true });
  home = await asOlder(home);
  const elsewhere = await scratch();
  await Deno.rename(`${home.dir}/checkpoints`, `${elsewhere}/checkpoints`);
  await Deno.symlink(`${elsewhere}/checkpoints`, `${home.dir}/checkpoints`);
  const { checkpoints, kept } = await collectGarbage(home, ALL);
  deepStrictEqual([checkpoints.count, kept.map(({ run }) => run).sort()], [0, ["a", "b"]]);
  ok(
    kept.every(({ why }) => /does not say which run it belongs to/.test(why)),
    JSON.stringify(kept),
  );
  ok(await exists(leftover(home, "a")) && await exists(leftover(home, "b")));
  await home.close();
});

Deno.test("a moved home keeps its files, and a linked copy leaves them", async () => {
  let home = await open();
  await done(home, "a");
  const elsewhere = `${await scratch()}/checkpoints`;
  await Deno.rename(`${home.dir}/checkpoints`, elsewhere);
  await Deno.symlink(elsewhere, `${home.dir}/checkpoints`);
  await home.close();
  const moved = `${await scratch()}/home`;
  await Deno.rename(home.dir, moved);
  home = await open(moved);
  strictEqual((await collectGarbage(home, ALL)).checkpoints.count, 1);
  await Deno.mkdir(leftover(home, "a"));
  await home.close();
  const copied = `${await scratch()}/home`;
  await new Deno.Command("cp", { args: ["-a", moved, copied] }).output();
  const copy = await open(copied);
  strictEqual(await Deno.readLink(`${copied}/checkpoints`), elsewhere);
  const { checkpoints, kept } = await collectGarbage(copy, ALL);
  deepStrictEqual([checkpoints.count, kept.some(({ why }) => /belongs to run 'a' of/.test(why))], [
    0,
    true,
  ]);
  ok(await exists(leftover(copy, "a")));
  await copy.close();
});

Deno.test("a home's lost identity is restored from its directories", async () => {
  const home = await open();
  await create(home, "a");
  const nonce = await homeNonce(home.dir);
  for (const text of [null, "", "garbage\n"]) {
    if (text === null) await Deno.remove(`${home.dir}/nonce`);
    else await Deno.writeTextFile(`${home.dir}/nonce`, text);
    deepStrictEqual([await homeNonce(home.dir), await Deno.readTextFile(`${home.dir}/nonce`)], [
      nonce,
      `${nonce}\n`,
    ]);
  }
  await home.close();
});

Deno.test("a directory whose owner is lost or damaged is left alone: it may be another run's", async () => {
  const home = await open();
  await done(home, "a");
  const file = `${home.checkpointsDir("a")}/owner.json`;
  for (const text of [null, "", "{", '{"run":"../.."}']) {
    if (text === null) await Deno.remove(file);
    else await Deno.writeTextFile(file, text);
    const { checkpoints, kept } = await collectGarbage(home, ALL);
    deepStrictEqual([checkpoints.count, ownerOf(home.checkpointsDir("a"))], [0, null]);
    match(kept[0]!.why, /checkpoints\/a' does not say which run it belongs to\. Fix: inspect it/);
  }
  ok(await exists(leftover(home, "a")));
  await home.close();
});

Deno.test("gc removes links of a killed fork of this home alone", async () => {
  const home = await open();
  await create(home, "a");
  const mine = await home.owner("never");
  for (
    const [name, owner] of [["never", mine], ["other", { ...mine, store: "x", run: "other" }], [
      "copy",
      mine,
    ]] as const
  ) {
    writeOwner(home.checkpointsDir(name), owner);
    await Deno.mkdir(leftover(home, name));
  }
  strictEqual((await collectGarbage(home, ALL)).checkpoints.count, 1);
  deepStrictEqual([...Deno.readDirSync(`${home.dir}/checkpoints`)].map(({ name }) => name).sort(), [
    "a",
    "copy",
    "other",
  ]);
  await home.close();
});

Deno.test("gc refuses a home that shares its artifacts", async () => {
  const [one, other] = [await open(), await open()];
  const { wanted } = await done(one, "a");
  await Deno.remove(`${other.dir}/artifacts`);
  await Deno.symlink(`${one.dir}/artifacts`, `${other.dir}/artifacts`);
  const { wanted: others } = await done(other, "b");
  for (const home of [one, other]) {
    await refuses(home, /the home .* stores artifacts in the same directory\. Fix: give each/);
  }
  ok(await one.artifacts.has(wanted) && await one.artifacts.has(others));
  for (const home of [one, other]) await home.close();
});

Deno.test("a folder that links to nothing is refused before a run is recorded", async () => {
  for (const folder of ["artifacts", "checkpoints"]) {
    const home = await open();
    await Deno.remove(`${home.dir}/${folder}`);
    await Deno.symlink("/nowhere/at/all", `${home.dir}/${folder}`);
    await rejects(
      create(home, "a"),
      /Cannot make .* because its path is blocked: .*Fix: create a directory there/,
    );
    deepStrictEqual(await home.store.heads(), []);
    await home.close();
  }
});
