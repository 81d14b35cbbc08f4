/** A journal that was replaced by an older copy, or lost, is told from the whole one by its marks. */
import { cpSync } from "node:fs";
import { hostname } from "node:os";
import { relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { z } from "zod";
import {
  ArtifactStore,
  defineStage,
  type EngineEvent,
  graph,
  processOwner,
  sha256Hex,
} from "../../../engine/mod.ts";
import { collectGarbage, createRun, executeRun, type GcOptions, Home } from "../../../runs/mod.ts";
import { JournalMarking, journalMarks, markJournal } from "../../../runs/garbage/journal_marks.ts";
import { namesIn } from "../../../runs/home/names_in.ts";
import { scratch } from "../../flows/fixtures.ts";

const VERSION = "0123456789ab";
const PUBLICATION = "0123456789abcdef";

/** A run that records a checkpoint, as the trainer does, and an artifact. */
const save = defineStage({
  name: "save",
  version: 1,
  input: z.strictObject({ dir: z.string() }),
  output: z.unknown(),
  async run({ dir }, ctx) {
    const rest = { digest: "", world_size: 1, files: [], number: 1, round: 1, metric: null };
    await ctx.record("note/checkpoint", VERSION, { version: VERSION, dir, ...rest });
    return await ctx.artifacts.putJson({ batch: 1 });
  },
});
const Config = z.strictObject({ dir: z.string() });
const saving = graph("saving", Config, (g, c) => g.stage(save, { dir: c.dir }));
const ALL: GcOptions = { younger_than_ms: -60_000 };
const DATABASE = ["", "-wal", "-shm"];

const copyOf = (home: Home) => `${home.dir}-copy.db`;
const checkpoint = (home: Home, run = "a") => `${home.checkpointsDir(run)}/000001-${VERSION}-1-1`;
const publication = (home: Home, run = "a") => `${home.runDir(run)}/publications/${PUBLICATION}`;
const exists = (path: string) => Deno.lstat(path).then(() => true, () => false);

/** A home whose runs are done, beside a copy of its journal from before they started. */
async function withCopy(...runs: string[]): Promise<Home> {
  if (runs.length === 0) runs.push("a");
  return await copiedHome(runs, []);
}

/** The same, with runs that are created only. */
async function copiedHome(done: readonly string[], begun: readonly string[]): Promise<Home> {
  let home = Home.open(`${await scratch()}/home`);
  for (const id of [...begun, ...done]) {
    await createRun(home, saving, { config: { dir: checkpoint(home, id) }, entry: "", id });
  }
  await home.close(); // Writes all into the one file.
  await Deno.copyFile(`${home.dir}/holdfast.db`, copyOf(home));
  home = Home.open(home.dir);
  for (const id of done) await finish(home, id);
  return home;
}

async function finish(home: Home, id: string): Promise<void> {
  const head = (await home.store.head(id))!;
  await executeRun(home, { head, graph: saving.build({ dir: checkpoint(home, id) }) });
  for (const dir of [checkpoint(home, id), publication(home, id)]) {
    await Deno.mkdir(dir, { recursive: true });
  }
}

/** `copy`: puts the older journal back; else the home has none, and begins a new one. */
async function replaceJournal(home: Home, { copy }: { copy: boolean }): Promise<Home> {
  await home.close();
  for (const part of DATABASE) await Deno.remove(`${home.dir}/holdfast.db${part}`).catch(() => {});
  if (copy) await Deno.copyFile(copyOf(home), `${home.dir}/holdfast.db`);
  return Home.open(home.dir);
}

/** The code with which a refused `gc` may go on. */
async function codeOf(home: Home, why: RegExp, options: GcOptions = ALL): Promise<string> {
  const error = await collectGarbage(home, options).then(
    () => new Error("gc did not refuse"),
    (error: Error) => error,
  );
  match(error.message, why);
  return /--accept ([0-9a-f]{12})/.exec(error.message)![1]!;
}

Deno.test("executeRun() marks how far the journal had got beside the files and the artifacts", async () => {
  const home = await withCopy();
  const { last_seq } = (await home.store.head("a"))!;
  const { id } = await home.store.identity();
  const mark = { store: id, run: "a", seq: last_seq };
  ok(last_seq > 0);
  deepStrictEqual(await journalMarks(home), [mark, mark, mark]);
  await home.close();
});

Deno.test("JournalMarking marks when files are recorded or a round closes, while the run runs", async () => {
  const home = await withCopy();
  const place = { run: "a", key: "", at_ms: 0 };
  const notes = ["note/checkpoint", "note/publication", "note/reference"] as const;
  const events = [...notes.map((kind) => ({ type: "note", kind, ...place })), {
    type: "round_closed",
    ...place,
  }];
  for (const event of events) {
    const marked = Promise.withResolvers<void>();
    const store = new Proxy(home.store, {
      get: (target, name) => {
        if (name === "head") marked.resolve();
        const member = Reflect.get(target, name) as unknown;
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
    const marking = new JournalMarking(new Home(home.dir, { ...home, store }), {
      run: "a",
      say: () => {},
    });
    marking.on(event as unknown as EngineEvent);
    await marked.promise;
    await marking.mark();
  }
  await home.close();
});

Deno.test("gc refuses an older copy of the journal, and removes exactly what was accepted", async () => {
  let home = await withCopy();
  const { last_seq } = (await home.store.head("a"))!;
  home = await replaceJournal(home, { copy: true });
  const why = new RegExp(`ends at row 0 of run 'a', which had recorded row ${last_seq}: it is an`);
  const code = await codeOf(home, why);
  const files = [checkpoint(home), publication(home)];
  deepStrictEqual(await Promise.all(files.map(exists)), [true, true]);
  const another = await home.artifacts.putJson({ since: "then" });
  const other = await codeOf(home, why);
  ok(other !== code);
  await rejects(collectGarbage(home, { ...ALL, accept: code }), why);
  await collectGarbage(home, { ...ALL, accept: other, dry_run: true });
  strictEqual(await home.artifacts.has(another), true);
  strictEqual(await codeOf(home, why), other); // What was only looked at is still protected.
  const { artifacts } = await collectGarbage(home, { ...ALL, accept: other });
  strictEqual(artifacts.count, 2);
  deepStrictEqual(await Promise.all(files.map(exists)), [false, false]);
  strictEqual((await collectGarbage(home, ALL)).bytes, 0); // The journal is the right one now.
  await home.close();
});

Deno.test("gc lowers no mark before what was accepted is gone, so that no engine puts it again", async () => {
  const home = await replaceJournal(await withCopy(), { copy: true });
  const accept = await codeOf(home, /older copy/);
  const marks = await journalMarks(home);
  const killed = () => Promise.reject(new Error("killed"));
  const { rememberStore } = home;
  home.rememberStore = killed; // What comes before the first removal.
  await rejects(collectGarbage(home, { ...ALL, accept }), /killed/);
  deepStrictEqual(await journalMarks(home), marks);
  home.rememberStore = rememberStore;
  await collectGarbage(home, { ...ALL, accept });
  deepStrictEqual((await journalMarks(home)).map(({ seq }) => seq), [0, 0, 0]);
  await home.close();
});

Deno.test("executeRun() refuses an older copy of the journal until gc has accepted it", async () => {
  const home = await replaceJournal(await withCopy(), { copy: true });
  const head = (await home.store.head("a"))!;
  const graph = saving.build({ dir: checkpoint(home) });
  await rejects(
    executeRun(home, { head, graph }),
    /^InvalidInputError: Cannot continue run 'a' because its journal is an older copy: it ends at row 0, .*Fix: /,
  );
  const accept = await codeOf(home, /older copy/);
  await collectGarbage(home, { ...ALL, accept });
  strictEqual((await executeRun(home, { head, graph })).status, "done");
  await home.close();
});

Deno.test("gc refuses artifacts whose journal is gone, whatever their times, even beside a new run", async () => {
  let home = await withCopy();
  for (const name of ["runs", "checkpoints", "logs"]) {
    await Deno.remove(`${home.dir}/${name}`, { recursive: true });
  }
  for (const name of ["stores", "nonce"]) await Deno.remove(`${home.dir}/${name}`);
  home = await replaceJournal(home, { copy: false });
  const why = /artifacts were put by run 'a' of journal [0-9a-f]{32}, which is not open/;
  await codeOf(home, why);
  await createRun(home, saving, { config: { dir: "" }, entry: "", id: "b" });
  const { artifacts } = await collectGarbage(home, { ...ALL, accept: await codeOf(home, why) });
  strictEqual(artifacts.count, 1);
  strictEqual((await collectGarbage(home, ALL)).bytes, 0);
  await home.close();
});

Deno.test("createRun() makes no run the owner of artifacts that were there before the first", async () => {
  const home = Home.open(`${await scratch()}/home`);
  await home.artifacts.putJson({ of: "a lost journal" });
  await createRun(home, saving, { config: { dir: "" }, entry: "", id: "b" });
  await codeOf(home, /artifacts were put before this home's first run/);
  await home.close();
});

Deno.test("gc of one run gives up nothing that later rows of a different run recorded", async () => {
  const home = await replaceJournal(await withCopy("a", "b"), { copy: true });
  const only = { ...ALL, runs: ["a"] };
  await collectGarbage(home, { ...only, accept: await codeOf(home, /older copy/, only) });
  deepStrictEqual(await Promise.all(["a", "b"].map((run) => exists(checkpoint(home, run)))), [
    false,
    true,
  ]);
  strictEqual((await collectGarbage(home, only)).bytes, 0);
  const accept = await codeOf(home, /ends at row 0 of run 'b', which had recorded row/);
  await collectGarbage(home, { ...ALL, accept });
  strictEqual(await exists(checkpoint(home, "b")), false);
  strictEqual((await collectGarbage(home, ALL)).bytes, 0);
  await home.close();
});

Deno.test("gc removes what was accepted however young it is, and nothing else that is young", async () => {
  const home = await replaceJournal(await withCopy("a", "b"), { copy: true });
  const only = { younger_than_ms: 60_000, runs: ["a"] };
  const accept = await codeOf(home, /older copy/, only);
  const { bytes: _, kept, ...removed } = await collectGarbage(home, { ...only, accept });
  deepStrictEqual(kept, []);
  deepStrictEqual(Object.values(removed).map(({ count }) => count), [1, 1, 1, 0, 0]);
  const files = ["a", "b"].flatMap((run) => [checkpoint(home, run), publication(home, run)]);
  deepStrictEqual(await Promise.all(files.map(exists)), [false, false, true, true]);
  await home.close();
});

Deno.test("gc gives up nothing of a run whose engine may live", async () => {
  const home = await replaceJournal(await withCopy(), { copy: true });
  const { head: { epoch } } = await home.store.claim("a", processOwner(), { lease_ms: 60_000 });
  await home.artifacts.putJson({ held: true });
  strictEqual((await collectGarbage(home, ALL)).bytes, 0);
  await home.store.release("a", epoch);
  await codeOf(home, /of run 'a', which had recorded row/);
  strictEqual(await exists(checkpoint(home)), true);
  await home.close();
});

/** An older copy of a journal, of which run 'a' has lost rows while an engine executes run 'b'. */
async function withLivingEngine(): Promise<{ home: Home; epoch: number }> {
  const home = await replaceJournal(await copiedHome(["a"], ["b"]), { copy: true });
  const { head: { epoch } } = await home.store.claim("b", processOwner(), { lease_ms: 60_000 });
  return { home, epoch };
}

Deno.test("gc gives up nothing while an engine lives, whose start hides artifacts from the list", async () => {
  const { home, epoch } = await withLivingEngine();
  const marks = await journalMarks(home);
  const files = [checkpoint(home), publication(home)].map((path) => relative(home.dir, path));
  const code = sha256Hex(files.join("\n")).slice(0, 12); // As it would be.
  const who = `the engine of run 'b' (process ${Deno.pid} on ${hostname()})`;
  for (const accept of [undefined, code]) {
    await rejects(collectGarbage(home, { ...ALL, accept }), (error: Error) => {
      match(error.message, /^Cannot tell which of 2 files .*Fix: stop it, then run the same com/s);
      return error.message.includes(who) && !error.message.includes("--accept");
    });
  }
  deepStrictEqual(await journalMarks(home), marks);
  ok(await exists(checkpoint(home)));
  await home.store.release("b", epoch);
  const error = await collectGarbage(home, ALL).then(() => null, (error: Error) => error);
  match(error!.message, /which of 3 files .*:\n {2}artifacts\/[0-9a-f/]+\n {2}checkpoints\/a/s);
  await collectGarbage(home, { ...ALL, accept: await codeOf(home, /older copy/) });
  strictEqual(await exists(checkpoint(home)), false);
  await home.close();
});

Deno.test("gc with nothing to list keeps its marks while an engine lives", async () => {
  const { home, epoch } = await withLivingEngine();
  for (const path of [checkpoint(home), publication(home)]) await Deno.remove(path);
  const marks = await journalMarks(home);
  strictEqual((await collectGarbage(home, ALL)).bytes, 0);
  deepStrictEqual(await journalMarks(home), marks);
  await home.store.release("b", epoch);
  await codeOf(home, /Cannot tell which of 1 files/);
  await home.close();
});

Deno.test("gc gives up files while an engine of another home executes a run of the same journal", async () => {
  const { home, epoch } = await withLivingEngine();
  await home.store.release("b", epoch);
  const other = new Home(await scratch(), {
    store: home.store,
    artifacts: new ArtifactStore(await scratch()),
  });
  await createRun(other, saving, { config: { dir: "" }, entry: "", id: "there" });
  await home.store.claim("there", processOwner(), { lease_ms: 60_000 });
  const { artifacts } = await collectGarbage(home, {
    ...ALL,
    accept: await codeOf(home, /Cannot tell which of 3 files/),
  });
  strictEqual(artifacts.count, 1);
  await home.close();
});

Deno.test("gc lists no files of runs that the open journal names", async () => {
  const home = await replaceJournal(await withCopy(), { copy: false });
  for (const name of ["runs/a", "stores"]) {
    await Deno.remove(`${home.dir}/${name}`, { recursive: true });
  }
  await createRun(home, saving, { config: { dir: checkpoint(home, "zz") }, entry: "", id: "zz" });
  await finish(home, "zz");
  await home.artifacts.putJson({ of: "a" });
  await rejects(collectGarbage(home, ALL), (error: Error) => {
    match(error.message, /^Cannot tell which of 1 files .*:\n {2}artifacts\/[0-9a-f/]+$/);
    return true;
  });
  await home.close();
});

/** Accepts whatever `gc` lists, then continues the run. */
async function acceptAndResume(home: Home): Promise<string> {
  await collectGarbage(home, { ...ALL, accept: await codeOf(home, /older copy/) });
  const head = (await home.store.head("a"))!;
  return (await executeRun(home, { head, graph: saving.build({ dir: checkpoint(home) }) })).status;
}

Deno.test("a mark that was being written when its process was killed counts for nothing", async () => {
  const home = await replaceJournal(await withCopy(), { copy: true });
  const dir = `${home.artifacts.dir}/journals`;
  const [name] = await namesIn(dir);
  const directories = [home.runDir("a"), home.checkpointsDir("a")];
  for (const path of [`${dir}/${name}`, ...directories.map((dir) => `${dir}/journal.json`)]) {
    await Deno.copyFile(path, `${path}.${crypto.randomUUID()}`);
  }
  strictEqual(await acceptAndResume(home), "done");
  deepStrictEqual(await namesIn(dir), [name]);
  for (const dir of directories) {
    deepStrictEqual((await namesIn(dir)).filter((name) => name.startsWith("journal.json")), [
      "journal.json",
    ]);
  }
  await home.close();
});

Deno.test("a mark behind a link is neither read nor written", async () => {
  const home = await replaceJournal(await withCopy(), { copy: true });
  const disk = await scratch();
  await Deno.rename(home.runDir("a"), `${disk}/a`);
  await Deno.symlink(`${disk}/a`, home.runDir("a"));
  strictEqual((await journalMarks(home)).length, 2);
  strictEqual(await acceptAndResume(home), "done");
  await home.close();
});

for (const keeps of [false, true]) {
  const remains = keeps ? "directories and artifacts" : "artifacts";
  Deno.test(`createRun() records no run whose lost namesake left ${remains}`, async () => {
    let home = await withCopy();
    const make = () => createRun(home, saving, { config: { dir: "" }, entry: "", id: "c" });
    await make();
    await finish(home, "c");
    home = await replaceJournal(home, { copy: true });
    for (const dir of ["runs/c", "checkpoints/c", "logs/c"].map((name) => `${home.dir}/${name}`)) {
      for (const name of keeps ? await namesIn(dir) : []) {
        const about = ["owner.json", "journal.json"].includes(name);
        if (!about) await Deno.remove(`${dir}/${name}`, { recursive: true });
      }
      if (!keeps) await Deno.remove(dir, { recursive: true });
    }
    const why =
      /^InvalidInputError: Cannot create run 'c' because .* lacks this run, which had recorded row \d+\. Fix: choose a different --id/;
    await rejects(make(), why);
    strictEqual(await home.store.head("c"), null);
    await collectGarbage(home, { ...ALL, accept: await codeOf(home, /older copy|in no open/) });
    await make();
    await finish(home, "c");
    await home.close();
  });
}

Deno.test("a mark that cannot be written costs neither a run nor the other marks", async () => {
  const home = Home.open(`${await scratch()}/home`);
  await Deno.mkdir(home.artifacts.dir, { recursive: true });
  await Deno.writeTextFile(`${home.artifacts.dir}/journals`, "");
  const config = { dir: checkpoint(home) };
  const head = await createRun(home, saving, { config, entry: "", id: "a" });
  strictEqual((await journalMarks(home)).length, 2);
  await Deno.remove(`${home.artifacts.dir}/journals`);
  await Deno.remove(`${home.runDir("a")}/journal.json`);
  await Deno.mkdir(`${home.runDir("a")}/journal.json`);
  const logged: string[] = [];
  const onEvent = (event: EngineEvent) => {
    if (event.type === "log") logged.push(event.text);
  };
  const { status } = await executeRun(home, { head, graph: saving.build(config) }, { onEvent });
  strictEqual(status, "done");
  match(
    logged[0]!,
    /^The journal was not marked: Cannot write .*: a directory is there\. Fix: remove it$/,
  );
  const { last_seq } = (await home.store.head("a"))!;
  deepStrictEqual((await journalMarks(home)).map(({ seq }) => seq), [last_seq, last_seq]);
  strictEqual((await collectGarbage(home, ALL)).artifacts.count, 0);
  await home.close();
});

/** As docs/store.md copies a home whose engine runs. */
const copyFiles = (from: string, to: string, skip: readonly RegExp[] = []) => {
  const isCopied = (path: string) =>
    ![/^holdfast\.db/, ...skip].some((name) => name.test(relative(from, path)));
  cpSync(from, to, { recursive: true, filter: isCopied });
};
const MARKS = [/(^|\/)journal\.json$/, /^artifacts\/journals$/];

function copyJournal(from: string, to: string): void {
  const journal = new DatabaseSync(`${from}/holdfast.db`);
  journal.exec(`VACUUM INTO '${to}/holdfast.db'`);
  journal.close();
}

for (const inOrder of [true, false]) {
  const what = inOrder ? "as the page says is whole" : "with newer marks is refused";
  Deno.test(`a home that was copied while its run ran, ${what}`, async () => {
    const [copied, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const later = defineStage({
      name: "later",
      version: 1,
      input: z.unknown(),
      output: z.unknown(),
      async run(batch, ctx) {
        copied.resolve();
        await ended.promise;
        return await ctx.artifacts.putJson({ batch, later: true });
      },
    });
    const living = graph("living", Config, (g, c) => g.stage(later, g.stage(save, { dir: c.dir })));
    let home = Home.open(`${await scratch()}/home`);
    const copy = `${home.dir}-copy`;
    const config = { dir: checkpoint(home) };
    const head = await createRun(home, living, { config, entry: "", id: "a" });
    copyFiles(home.dir, copy);
    const running = executeRun(home, { head, graph: living.build(config) });
    await copied.promise; // Recorded: a checkpoint and its artifact.
    await Deno.mkdir(checkpoint(home), { recursive: true });
    copyJournal(home.dir, copy);
    ended.resolve();
    strictEqual((await running).status, "done");
    copyFiles(home.dir, copy, inOrder ? MARKS : []);
    await home.close();
    await Deno.remove(home.dir, { recursive: true });
    await Deno.rename(copy, home.dir);
    home = Home.open(home.dir);
    const { epoch } = (await home.store.head("a"))!;
    await home.store.release("a", epoch); // Its engine was on the machine that is gone.
    const resume = async () =>
      await executeRun(home, { head: (await home.store.head("a"))!, graph: living.build(config) });
    if (inOrder) {
      strictEqual((await collectGarbage(home, ALL)).artifacts.count, 1); // Put after the journal.
      ok(await exists(checkpoint(home)));
      strictEqual((await resume()).status, "done");
    } else {
      await rejects(resume(), /its journal is an older copy/);
    }
    await home.close();
  });
}

Deno.test("a mark is never lowered by an older journal", async () => {
  const home = await replaceJournal(await withCopy(), { copy: true });
  const before = await journalMarks(home);
  await markJournal(home, "a");
  deepStrictEqual(await journalMarks(home), before);
  await markJournal(home, "a", { lower: true });
  deepStrictEqual((await journalMarks(home)).map(({ seq }) => seq), [0, 0, 0]);
  await home.close();
});
