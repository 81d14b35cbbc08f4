import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { ArtifactStore, OWNER_FILE, processOwner, writeOwner } from "../../engine/mod.ts";
import { Crashed, MemoryStore } from "../../testing/mod.ts";
import { collectGarbage, forkRun, type GcOptions, type GcReport, Home } from "../../runs/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "./fake_home.ts";

/** Nothing of a test is an hour old. */
const ALL: GcOptions = { younger_than_ms: -60_000 };

/** What people can see and do of a run: how it is shown, and how forks of its rounds end. */
async function seen(home: Home, id: string) {
  const ended = await executeFake(home, id);
  return {
    status: ended.status,
    version: ended.version,
    digest: ended.digest,
    ledger: ended.ledger,
  };
}

async function fork(
  home: Home,
  from: string,
  options: { round: number; id: string; overrides?: string[] },
) {
  return await forkRun(home, (await home.store.head(from))!, options);
}

const files = async (dir: string) =>
  await Array.fromAsync(Deno.readDir(dir), ({ name }) => name)
    .then((names) => names.filter((name) => name !== OWNER_FILE).sort(), () => []);

Deno.test("gc removes only publications of ended runs where all else is needed", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  const before = await executeFake(home, "a");
  const publications = `${home.runDir("a")}/publications`;
  await Deno.mkdir(`${publications}/0123456789abcdef`, { recursive: true });
  await Deno.writeTextFile(`${publications}/0123456789abcdef/weights`, "12345");
  await Deno.writeTextFile(`${publications}/notes.txt`, "mine");
  const dry = await collectGarbage(home, { ...ALL, dry_run: true });
  deepStrictEqual([dry.publications, dry.artifacts.count, dry.bytes], [
    { count: 1, bytes: 5 },
    0,
    5,
  ]);
  deepStrictEqual(await files(publications), ["0123456789abcdef", "notes.txt"]);
  deepStrictEqual(await collectGarbage(home, ALL), dry);
  deepStrictEqual(await files(publications), ["notes.txt"]);
  strictEqual((await executeFake(home, "a")).digest, before.digest);
});

Deno.test("gc removes reference weights of ended runs alone", async () => {
  const home = await freshFakeHome();
  const name = "0123456789abcdef";
  for (const id of ["ended", "open"]) {
    await createFakeRun(home, id);
    await Deno.mkdir(`${home.runDir(id)}/references/${name}`, { recursive: true });
  }
  await executeFake(home, "ended");
  const { head: { epoch } } = await home.store.claim("open", processOwner(), { lease_ms: 1 });
  const row = { kind: "note/reference" as const, key: name.repeat(4), value: "{}" };
  await home.store.append("open", epoch, [row]);
  await home.store.release("open", epoch);
  strictEqual((await collectGarbage(home, ALL)).publications.count, 1);
  deepStrictEqual(await files(`${home.runDir("ended")}/references`), []);
  deepStrictEqual(await files(`${home.runDir("open")}/references`), [name]);
});

Deno.test("gc removes old unused files, and logs only when asked", async () => {
  const home = await freshFakeHome();
  const head = await createFakeRun(home, "a");
  await executeFake(home, "a");
  const lost = await home.artifacts.putJson({ lost: true });
  await Deno.mkdir(`${home.checkpointsDir("a")}/000001-0123456789ab-1-1`, { recursive: true });
  writeOwner(home.checkpointsDir("never"), await home.owner("never"));
  await Deno.mkdir(`${home.checkpointsDir("never")}/000001-0123456789ab-2-1`);
  for (const n of [0, 1]) await Deno.mkdir(home.logDir("a", n), { recursive: true });
  strictEqual((await collectGarbage(home)).bytes, 0);
  ok(await home.artifacts.has(lost));
  const report = await collectGarbage(home, ALL);
  deepStrictEqual([report.artifacts, report.checkpoints.count, report.logs.count], [
    { count: 1, bytes: lost.bytes },
    2,
    0,
  ]);
  deepStrictEqual(await files(home.checkpointsDir("never")), []);
  strictEqual((await collectGarbage(home, { ...ALL, logs_older_than_ms: -60_000 })).logs.count, 1);
  deepStrictEqual(await files(`${home.dir}/logs/a`), [
    `attempt_${(await home.store.head(head.id))!.epoch}`,
  ]);
});

Deno.test("gc leaves a live run and every artifact since its start alone", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  await createFakeRun(home, "live");
  await home.store.claim("live", processOwner(), { lease_ms: 60_000 });
  const held = await home.artifacts.putJson({ held: "by a body that has not returned" });
  await Deno.mkdir(`${home.checkpointsDir("live")}/000001-0123456789ab-1-1`, { recursive: true });
  const report = await collectGarbage(home, { ...ALL, rows: true });
  deepStrictEqual([report.artifacts.count, report.checkpoints.count], [0, 0]);
  ok(await home.artifacts.has(held));
  deepStrictEqual(report.kept.filter(({ run }) => run === "live").map(({ what }) => what), [
    "rows",
    "files",
  ]);
});

Deno.test("gc --rows keeps what a checkpoint or a fork reaches", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { checkpoints: { every_rounds: 2, keep_last: 2 } });
  await executeFake(home, "a");
  const rounds = async () =>
    (await home.store.read("a", { kinds: ["round"] })).map(({ key }) => key);
  await fork(home, "a", { round: 3, id: "b" });
  const reasons = ({ kept }: GcReport) =>
    kept.filter(({ run }) => run === "a").map(({ what, why }) => `${what}: ${why}`);
  const first = await collectGarbage(home, { ...ALL, rows: true });
  deepStrictEqual(reasons(first), ["round/1 and later: fork 'b' needs it to rebuild its versions"]);
  deepStrictEqual([first.rows.count, first.artifacts.count], [0, 0]);
  await executeFake(home, "b");
  const whole = await seen(home, "a");
  const second = await collectGarbage(home, { ...ALL, rows: true });
  deepStrictEqual(reasons(second), ["round/4 and later: a checkpoint is of this round"]);
  deepStrictEqual(await rounds(), ["round/4", "round/5", "round/6"]);
  ok(second.rows.count > 20 && second.artifacts.count > 5, JSON.stringify(second));
  deepStrictEqual(await seen(home, "a"), whole);
  for (const round of [4, 5, 6]) {
    await fork(home, "a", { round, id: `c${round}` });
    deepStrictEqual(await seen(home, `c${round}`), whole);
  }
  await rejects(fork(home, "a", { round: 3, id: "d" }), /only its closed rounds 4 to 6 are kept/);
});

Deno.test("gc refuses to judge a home whose artifacts belong to another journal too", async () => {
  const home = await freshFakeHome();
  await Deno.writeTextFile(`${home.dir}/stores`, "postgres://db:5432/runs?schema=holdfast\n");
  strictEqual((await collectGarbage(home, ALL)).bytes, 0); // Nothing is at stake.
  await home.artifacts.putJson({ of: "a run in there" });
  await rejects(collectGarbage(home, ALL), (error: Error) => {
    match(
      error.message,
      /runs in postgres:\/\/db:5432\/runs\?schema=holdfast keep files here too, .*Fix: name it with --store/,
    );
    return true;
  });
});

Deno.test("gc leaves every run as it was, even if it is killed at any write", async () => {
  const plans = fc.record({
    cut: fc.integer({ min: 1, max: 60 }),
    killed: fc.integer({ min: 0, max: 3 }),
    first: fc.integer({ min: 0, max: 6 }),
    second: fc.integer({ min: 0, max: 6 }),
    keep_last: fc.integer({ min: 1, max: 3 }),
    execute: fc.array(fc.constantFrom("b", "c"), { maxLength: 2 }),
  });
  await fc.assert(
    fc.asyncProperty(plans, async ({ cut, killed, first, second, keep_last, execute }) => {
      const store = new MemoryStore();
      const home = await freshFakeHome(store);
      const reopened = (options = {}) =>
        new Home(home.dir, {
          store: store.restarted(options),
          artifacts: new ArtifactStore(home.artifacts.dir),
        });
      await createFakeRun(home, "a", { checkpoints: { every_rounds: 2, keep_last } });
      const whole = await seen(home, "a");
      await createFakeRun(home, "cut", { checkpoints: { every_rounds: 2, keep_last } });
      await executeFake(home, "cut", { store: store.restarted({ crash_after_appends: cut }) })
        .catch(expectCrash);
      await fork(reopened(), "a", { round: first, id: "b" });
      await fork(reopened(), "b", { round: second, id: "c" });
      for (const id of execute) deepStrictEqual(await seen(reopened(), id), whole);
      await collectGarbage(reopened({ crash_after_appends: killed }), { ...ALL, rows: true }).catch(
        expectCrash,
      );
      await collectGarbage(reopened(), { ...ALL, rows: true });
      strictEqual((await collectGarbage(reopened(), { ...ALL, rows: true })).bytes, 0);
      for (const id of ["a", "cut", "b", "c"]) {
        const again = await seen(reopened(), id);
        deepStrictEqual([id, again.digest, again.ledger], [id, whole.digest, whole.ledger]);
        const rounds = (await store.read(id, { kinds: ["round"] })).map(({ key }) =>
          Number(key.split("/")[1])
        );
        for (const round of new Set([rounds[0]!, rounds.at(-1)!])) {
          const of = `${round}-of-${id}`;
          await fork(reopened(), id, { round, id: of });
          strictEqual((await seen(reopened(), of)).digest, whole.digest);
        }
      }
    }),
    { numRuns: 15 },
  );
});

function expectCrash(error: unknown): void {
  if (!(error instanceof Crashed)) throw error;
}
