import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { ArtifactStore, ReplayDriftError, type RunHead } from "../../../engine/mod.ts";
import { commitOf } from "../../../runs/session/release.ts";
import {
  createRun,
  forkRun,
  Home,
  otherRelease,
  resumable,
  resumeRun,
  runGraph,
  serveRuns,
  sourcesDigest,
  thisRelease,
} from "../../../runs/mod.ts";
import { MemoryStore } from "../../../testing/mod.ts";
import { scratch } from "../../flows/fixtures.ts";
import { doubled } from "./serving_graphs.ts";

const MODULE = new URL("./serving_graphs.ts", import.meta.url);
const ENTRY = `${MODULE.href}#doubled`;
const EARLIER = { holdfast: "0.0.9", sources: "f".repeat(64), commit: "0123456789ab" };

/** A run of another release, in a home of its own. `packages`: the text that its head has. */
async function foreign(
  release?: object,
  packages = JSON.stringify({ deno: Deno.version.deno, ...release }),
): Promise<{ home: Home; head: RunHead }> {
  const dir = await scratch();
  const store = new MemoryStore();
  const home = new Home(dir, { store, artifacts: new ArtifactStore(`${dir}/artifacts`) });
  const model = await createRun(home, doubled, { config: { n: 1 }, entry: ENTRY, id: "model" });
  const head = await store.create({ ...model, id: "a", packages, queue: "default" });
  return { home, head };
}

const REFUSED = {
  name: ReplayDriftError.name,
  message: new RegExp(
    "^Cannot continue run 'a' because its code has changed: it was recorded by Holdfast 0\\.0\\.9 " +
      "\\(commit 0123456789ab, sources ffffffffffff\\), and this is Holdfast \\S+ \\(.*sources " +
      `${thisRelease().sources.slice(0, 12)}\\)\\. Use that one \\(git checkout 0123456789ab\\), ` +
      "or --accept if ",
  ),
};

Deno.test("a run of another release is refused by everything that would continue it, with the way on", async () => {
  const { home, head } = await foreign(EARLIER);
  await rejects(resumeRun(home, "a"), REFUSED);
  await rejects(resumable(home, head), REFUSED);
  await rejects(forkRun(home, head, { round: 0 }), REFUSED);
  await rejects(runGraph(doubled, { config: { n: 1 }, home, entry: ENTRY, id: "a" }), REFUSED);
  const reasons: string[] = [];
  await serveRuns(home, {
    queues: { default: 1 },
    until_idle: true,
    poll_ms: 1,
    drain: new AbortController().signal,
    onEvent: (event) => event.type === "refused" && reasons.push(event.reason),
  });
  strictEqual(reasons.length, 1);
  match(
    reasons[0]!,
    /^Cannot continue run 'a' .* \(git checkout 0123456789ab\), or 'resume a --accept' if /,
  );
  deepStrictEqual([(await home.store.head("a"))!.epoch, await home.store.read("a")], [0, []]);
});

Deno.test("a release with changed files, one without a commit and none at all are named as far as they are known", async () => {
  for (
    const [release, says] of [
      [{ ...EARLIER, commit: "0123456789ab-dirty" }, /checkout 0123456789ab, with the changes /],
      [{ holdfast: "0.0.9", sources: "e" }, /0\.0\.9 \(sources e\), .* Use the one that recorded /],
      [{}, /recorded by Holdfast of an unknown version, and this is .* Use the one that recorded /],
    ] as const
  ) {
    const { home } = await foreign(release);
    await rejects(resumeRun(home, "a"), { name: ReplayDriftError.name, message: says });
  }
});

Deno.test("an accepted run belongs to this release from then on, which it records", async () => {
  const { home, head } = await foreign(EARLIER);
  const { status } = await resumeRun(home, "a", { accept: true });
  strictEqual(status, "done");
  const rows = await home.store.read("a", { kinds: ["note/release"] });
  deepStrictEqual(rows.map(({ value }) => JSON.parse(value)), [thisRelease()]);
  strictEqual(await otherRelease(home.store, head), null);
});

Deno.test("a run of this release is no other one's, whatever the commit", async () => {
  const { home, head } = await foreign({ ...thisRelease(), commit: "another" });
  strictEqual(await otherRelease(home.store, head), null);
  strictEqual((await resumeRun(home, "a")).status, "done");
  deepStrictEqual(await home.store.read("a", { kinds: ["note/release"] }), []);
});

Deno.test("sourcesDigest() has the code and its locks, by path and content, and nothing else", async () => {
  const root = await scratch();
  const rooms = ["algs", "configs", "data", "engine", "flows", "rewards", "rollouts", "runs"];
  rooms.push("workers", "cli", "docs");
  for (const room of rooms) await Deno.mkdir(`${root}/${room}/inner`, { recursive: true });
  const write = (path: string, text: string) => Deno.writeTextFile(`${root}/${path}`, text);
  await write("deno.lock", "a");
  await write("engine/inner/a.ts", "1");
  const first = sourcesDigest(root);
  for (const path of ["cli/a.ts", "docs/a.md", "configs/a.yaml", "workers/inner/a.pyc"]) {
    await write(path, "x");
  }
  strictEqual(sourcesDigest(root), first);
  const seen = new Set([first]);
  for (
    const change of [
      () => write("engine/inner/a.ts", "2"),
      () => Deno.rename(`${root}/engine/inner/a.ts`, `${root}/engine/a.ts`),
      () => write("workers/inner/a.py", "2"),
      () => write("workers/inner/lock.txt", "2"),
      () => write("deno.lock", "b"),
    ]
  ) {
    await change();
    strictEqual(seen.has(sourcesDigest(root)), false);
    seen.add(sourcesDigest(root));
  }
});

Deno.test("a run whose release is damaged belongs to an unknown one, which can be accepted", async () => {
  for (const packages of ["", "{", "null", '{"sources":1}']) {
    const { home } = await foreign({}, packages);
    const says = /recorded by Holdfast of an unknown version, and this is /;
    await rejects(resumeRun(home, "a"), { name: ReplayDriftError.name, message: says });
    strictEqual((await resumeRun(home, "a", { accept: true })).status, "done");
  }
});

Deno.test("runGraph() and resumeRun() return how a run of another release ended", async () => {
  const { home } = await foreign(EARLIER);
  const ended = await resumeRun(home, "a", { accept: true });
  const { store } = home;
  const head = (await store.head("a"))!;
  store.read = () => Promise.resolve([]); // As if nobody had accepted.
  store.head = () => Promise.resolve(head);
  strictEqual((await otherRelease(store, head)) === null, false);
  strictEqual((await resumeRun(home, "a")).status, ended.status);
  const options = { config: { n: 1 }, home, entry: ENTRY, id: "a" };
  strictEqual((await runGraph(doubled, options)).status, ended.status);
  await rejects(forkRun(home, head, { round: 0 }), { name: ReplayDriftError.name });
});

Deno.test("sourcesDigest() leaves out hidden files: an editor's locks and an environment", async () => {
  const root = await scratch();
  for (
    const room of ["algs", "configs", "data", "engine", "flows", "rewards", "rollouts", "runs"]
  ) {
    await Deno.mkdir(`${root}/${room}`);
  }
  await Deno.mkdir(`${root}/workers/.venv`, { recursive: true });
  await Deno.writeTextFile(`${root}/deno.lock`, "a");
  const before = sourcesDigest(root);
  await Deno.symlink("somebody@host.1234", `${root}/engine/.#engine.ts`); // Emacs.
  await Deno.writeTextFile(`${root}/workers/.venv/site.py`, "1");
  strictEqual(sourcesDigest(root), before);
});

Deno.test("commitOf() does not name the commit of a repository around the installation", async () => {
  const dir = await scratch();
  const git = async (...args: string[]) => {
    const author = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
    const command = new Deno.Command("git", { args: ["-C", dir, ...author, ...args] });
    strictEqual((await command.output()).success, true);
  };
  await git("init", "-q");
  await git("commit", "-q", "--allow-empty", "-m", "a");
  await Deno.mkdir(`${dir}/with space/inner`, { recursive: true });
  strictEqual(commitOf(`${dir}/with space/`), undefined);
  match(commitOf(`${dir}/`)!, /^[0-9a-f]{12}$/);
});
