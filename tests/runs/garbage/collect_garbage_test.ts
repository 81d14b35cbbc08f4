import { deepStrictEqual, match, ok, rejects, strictEqual } from "node:assert/strict";
import { OWNER_FILE, processOwner, writeOwner } from "../../../engine/mod.ts";
import { collectGarbage, type GcOptions, type GcReport } from "../../../runs/mod.ts";
import { createFakeRun, executeFake, forkFake as fork, freshFakeHome, seen } from "../fake_home.ts";

/** Nothing of a test is an hour old. */
const ALL: GcOptions = { younger_than_ms: -60_000 };

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

Deno.test("gc removes nothing while an artifact that it must look into is a directory", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  await executeFake(home, "a");
  const lost = await home.artifacts.putJson({ lost: true });
  const [row] = await home.store.read("a", { kinds: ["note/version"] });
  const { record } = JSON.parse(row!.value) as { record: { sha256: string; bytes: number } };
  const path = home.artifacts.path(record);
  await Deno.remove(path);
  await Deno.mkdir(path);
  await rejects(collectGarbage(home, ALL), {
    code: "lost_record",
    message: new RegExp(`^Cannot read artifact ${path} because it is a directory: `),
  });
  ok(await home.artifacts.has(lost));
});
