import { rejects } from "node:assert/strict";
import {
  ArtifactStore,
  InvalidInputError,
  type UnreachableArtifact,
  writeOwner,
} from "../../engine/mod.ts";
import { Home } from "../../runs/mod.ts";
import { refuseLostJournal } from "../../runs/lost_journal.ts";
import { MemoryStore } from "../../testing/mod.ts";
import { scratch } from "../flows/fixtures.ts";
import { createFakeRun, freshFakeHome } from "./fake_home.ts";

const OTHER = "f".repeat(32);

/** A home, and an artifact of it that nothing refers to, `after_ms` the journal began. */
async function atStake(after_ms = 0) {
  const home = await freshFakeHome();
  const { id, since_ms } = await home.store.identity();
  const path = `${home.artifacts.dir}/aa/lost`;
  const lost: UnreachableArtifact[] = [
    { path, name: "lost", bytes: 1, changed_ms: since_ms + after_ms },
  ];
  return { home, lost, id, since_ms, path };
}

const goesThrough = (home: Home, lost: UnreachableArtifact[], stores = [home.store]) =>
  refuseLostJournal(home, { stores, lost });

async function refused(home: Home, lost: UnreachableArtifact[], why: string): Promise<void> {
  const message =
    `Cannot tell which of 1 artifacts in '${home.dir}' are still needed because ${why}`;
  await rejects(
    goesThrough(home, lost),
    new InvalidInputError(message, {
      home: home.dir,
      artifacts: 1,
    }),
  );
}

Deno.test("refuseLostJournal() lets a home through whose only journal knows its runs", async () => {
  const { home, lost } = await atStake();
  await createFakeRun(home, "a");
  await Deno.mkdir(`${home.dir}/runs/not a run`, { recursive: true });
  await goesThrough(home, lost);
});

Deno.test("refuseLostJournal() names a journal that keeps files here and is not open", async () => {
  const { home, lost } = await atStake();
  await Deno.writeTextFile(`${home.dir}/stores`, `${OTHER} elsewhere.db\n`);
  const fix = (where: string) =>
    `keep files here too, and that journal is not open. Fix: name it with --store, or restore ` +
    `${where} from a copy; if it no longer exists, remove its line from ${home.dir}/stores and ` +
    "move the files of its runs out of runs/";
  await refused(home, lost, `runs in elsewhere.db (journal ${OTHER}) ${fix("elsewhere.db")}`);
  await goesThrough(home, []); // Nothing is at stake.
});

Deno.test("refuseLostJournal() lets a second journal through once it is open too", async () => {
  const { home, lost } = await atStake();
  const second = new MemoryStore();
  const { id } = await second.identity();
  await Deno.writeTextFile(`${home.dir}/stores`, `${id} elsewhere.db\n`);
  await rejects(goesThrough(home, lost), /that journal is not open/);
  await goesThrough(home, lost, [home.store, second]);
});

Deno.test("refuseLostJournal() names a directory of a run that no journal knows", async () => {
  const { home, lost } = await atStake();
  const dir = `${home.dir}/runs/a`;
  await Deno.mkdir(dir, { recursive: true });
  const fix = "Fix: restore the journal from a copy, or name it with --store; if it no longer " +
    "exists, move that directory away";
  await refused(home, lost, `${dir} belongs to a run that is in no open journal. ${fix}`);
  writeOwner(dir, { ...await home.owner("a"), store: OTHER });
  await refused(
    home,
    lost,
    `${dir} belongs to a run that is in no open journal (its journal is ${OTHER}). ${fix}`,
  );
});

for (const folder of ["checkpoints", "logs"]) {
  Deno.test(`refuseLostJournal() asks of ${folder}/ only that their journal is open`, async () => {
    const { home, lost } = await atStake();
    const dir = `${home.dir}/${folder}/a`;
    await Deno.mkdir(dir, { recursive: true });
    await goesThrough(home, lost); // It does not say whose it is.
    writeOwner(dir, await home.owner("a"));
    await goesThrough(home, lost); // A fork that was killed leaves one.
    writeOwner(dir, { ...await home.owner("a"), store: OTHER });
    await rejects(
      goesThrough(home, lost),
      new RegExp(`${folder}/a belongs to a run that is in no open`),
    );
  });
}

Deno.test("refuseLostJournal() lets a copy of a directory through", async () => {
  const { home, lost } = await atStake();
  await Deno.mkdir(`${home.dir}/runs/copy`, { recursive: true });
  writeOwner(`${home.dir}/runs/copy`, { ...await home.owner("a"), store: OTHER });
  await goesThrough(home, lost);
});

Deno.test("refuseLostJournal() names an artifact that is older by over a second", async () => {
  const near = await atStake(-1000);
  await goesThrough(near.home, near.lost);
  const { home, lost, path, since_ms } = await atStake(-1001);
  const at = (ms: number) => new Date(ms).toISOString();
  await refused(
    home,
    lost,
    `${path}, of ${at(since_ms - 1001)}, is older than the journal, of ${at(since_ms - 1000)}. ` +
      "Fix: restore the journal that it was recorded in; if that no longer exists, remove the " +
      "older files of artifacts/ by hand",
  );
});

Deno.test("refuseLostJournal() names a home that shares the artifacts", async () => {
  const { home, lost } = await atStake();
  const other = await scratch();
  await Deno.mkdir(home.artifacts.dir, { recursive: true });
  await Deno.symlink(home.artifacts.dir, `${other}/artifacts`);
  const artifacts = new ArtifactStore(`${other}/artifacts`);
  await new Home(other, { store: new MemoryStore(), artifacts }).rememberStore();
  await refused(
    home,
    lost,
    `the home ${other} stores artifacts in the same directory. Fix: give each home a separate ` +
      `artifacts/; if that home no longer exists, remove its line from ${home.artifacts.dir}/homes`,
  );
});
