import { match, ok, rejects } from "node:assert/strict";
import {
  ArtifactStore,
  InvalidInputError,
  processOwner,
  type UnreachableArtifact,
  writeOwner,
} from "../../../engine/mod.ts";
import { Home } from "../../../runs/mod.ts";
import { refuseLostJournal } from "../../../runs/garbage/lost_journal.ts";
import { MemoryStore } from "../../../testing/mod.ts";
import { scratch } from "../../flows/fixtures.ts";
import { createFakeRun, freshFakeHome } from "../fake_home.ts";

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
  refuseLostJournal(home, {
    stores,
    lost,
    marks: [],
    living: [],
    files: () => Promise.resolve({ paths: lost.map(({ path }) => path), runs: new Set() }),
  });

async function refused(home: Home, lost: UnreachableArtifact[], why: string): Promise<void> {
  await rejects(goesThrough(home, lost), (error: Error) => {
    ok(error instanceof InvalidInputError);
    match(
      error.message,
      /^Cannot tell which of 1 (artifacts|files) in .* are still needed because /,
    );
    ok(error.message.includes(why), error.message);
    return true;
  });
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

/** As `gc` asks for a run whose journal had recorded up to row `seq`. */
async function withMark(mark: { store?: string; run?: string; seq: number }) {
  const { home, lost, id } = await atStake();
  await createFakeRun(home, "a");
  const marks = [{ store: id, run: "a", ...mark }];
  const files = [`${home.dir}/checkpoints/a/1`, `${home.dir}/artifacts/aa/lost`];
  const ask = (options: { accept?: string; files?: string[]; lost?: UnreachableArtifact[] } = {}) =>
    refuseLostJournal(home, {
      stores: [home.store],
      marks,
      living: [],
      lost,
      ...options,
      files: () => Promise.resolve({ paths: options.files ?? files, runs: new Set(["a"]) }),
    });
  return Object.assign(ask, { home });
}

for (
  const [mark, why] of [
    [{ seq: 9 }, /the open journal ends at row 0 of run 'a', which had recorded row 9: it is an o/],
    [
      { run: "b", seq: 0 },
      /the open journal lacks run 'b', which had recorded row 0: it is an old/,
    ],
    [{ store: OTHER, seq: 0 }, /artifacts were put by run 'a' of journal f{32}, which is not open/],
    [{ store: "unknown", seq: 0 }, /artifacts were put before this home's first run/],
  ] as const
) {
  Deno.test(`refuseLostJournal() refuses what no journal names: ${why.source.slice(0, 40)}`, async () => {
    const ask = await withMark(mark);
    await rejects(ask(), (error: Error) => {
      match(
        error.message,
        /^Cannot tell which of 2 files in .* because no journal names them, and/,
      );
      match(error.message, why);
      match(error.message, /Fix: restore the newest copy of the journal, or name the right one/);
      match(error.message, /:\n {2}artifacts\/aa\/lost\n {2}checkpoints\/a\/1$/);
      return true;
    });
    await ask({ files: [] }); // Nothing is at stake.
  });
}

Deno.test("refuseLostJournal() lets a journal through that ends where the mark says", async () => {
  await (await withMark({ seq: 0 }))();
});

Deno.test("refuseLostJournal() accepts exactly the files that it has listed", async () => {
  const ask = await withMark({ seq: 9 });
  const code = await ask().then(() => "", (error) => error.facts.accept as string);
  match(code, /^[0-9a-f]{12}$/);
  const more = (options: object) => rejects(ask(options), /Cannot tell which of/);
  await more({ accept: "0".repeat(12) });
  await more({ accept: code, files: ["/another"] });
  await ask({ accept: code });
});

Deno.test("refuseLostJournal() accepts nothing once an engine has started since the listing", async () => {
  const ask = await withMark({ seq: 9 });
  const code = await ask().then(() => "", (error) => error.facts.accept as string);
  await createFakeRun(ask.home, "b");
  const { head } = await ask.home.store.claim("b", processOwner(), { lease_ms: 60_000 });
  const { pid, host } = processOwner();
  const who = `while the engine of run 'b' (process ${pid} on ${host}) works`;
  for (const files of [undefined, []]) {
    await rejects(ask({ accept: code, files }), (error: Error) => error.message.includes(who));
  }
  await ask.home.store.release("b", head.epoch);
  await ask({ accept: code });
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
