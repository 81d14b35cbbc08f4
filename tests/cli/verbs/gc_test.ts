import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { inProcess } from "../in_process.ts";

/** A home with an artifact that nothing refers to. */
async function withGarbage() {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  await executeFake(home, "a");
  const ref = await home.artifacts.put(new TextEncoder().encode("garbage"));
  return { home, ref };
}

Deno.test("gc --dry-run reports what gc removes, and removes nothing", async () => {
  const { home, ref } = await withGarbage();
  const gc = (...args: string[]) =>
    inProcess(["gc", "--younger-than", "0", "--json", ...args], { home });
  const dry = JSON.parse((await gc("--dry-run")).out);
  deepStrictEqual([dry.dry_run, dry.artifacts], [true, { count: 1, bytes: 7 }]);
  strictEqual(await home.artifacts.has(ref), true);
  const done = JSON.parse((await gc()).out);
  deepStrictEqual({ ...done, dry_run: true }, dry);
  strictEqual(await home.artifacts.has(ref), false);
});

Deno.test("gc lists files that no journal names, and --accept removes exactly these", async () => {
  const home = await freshFakeHome();
  const ref = await home.artifacts.put(new TextEncoder().encode("of a lost journal"));
  const gc = (...args: string[]) => inProcess(["gc", "--younger-than", "0", ...args], { home });
  const { code, err } = await gc();
  strictEqual(code, 2);
  match(
    err,
    /^Cannot tell which of 1 files .* no journal names them, and .* Fix: restore the newest/,
  );
  const [, accept] = /with --accept ([0-9a-f]{12}):\n {2}artifacts\/[^\n]*\n$/.exec(err)!;
  strictEqual((await gc("--accept", "000000000000")).code, 2);
  strictEqual(await home.artifacts.has(ref), true);
  match((await gc("--accept", accept!)).out, /^artifacts +1 +17 B$/m);
  strictEqual(await home.artifacts.has(ref), false);
});

Deno.test("gc keeps what is younger than an hour unless it is told otherwise", async () => {
  const { home, ref } = await withGarbage();
  const { code, out } = await inProcess(["gc"], { home });
  strictEqual(code, 0);
  match(out, /^artifacts +0 +0 B$/m);
  match(out, /\nfreed 0 B\n$/);
  strictEqual(await home.artifacts.has(ref), true);
});

Deno.test("gc refuses an age that is not a whole number from 0 on", async () => {
  const { home } = await withGarbage();
  for (const option of ["--younger-than", "--logs-older-than"]) {
    const { code, err } = await inProcess(["gc", option, "-1"], { home });
    deepStrictEqual([code, err], [
      2,
      `Cannot use '-1' for ${option}: give a whole number of at least 0\n`,
    ]);
  }
});

/** A directory of environments with what a killed maker left. */
async function withLeftover(body: (dir: string, path: string) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "cli_gc_" });
  const before = Deno.env.get("HOLDFAST_ENV_DIR");
  const path = `${dir}/vllm_cpu-cpython3.11-0123456789ab.0a1b2c3d.making`;
  await Deno.mkdir(path);
  await Deno.writeTextFile(`${path}/half`, "12345");
  Deno.env.set("HOLDFAST_ENV_DIR", dir);
  try {
    await body(dir, path);
  } finally {
    if (before === undefined) Deno.env.delete("HOLDFAST_ENV_DIR");
    else Deno.env.set("HOLDFAST_ENV_DIR", before);
    await Deno.remove(dir, { recursive: true });
  }
}

Deno.test("gc --environments collects environments alone, and opens no home", () =>
  withLeftover(async (dir, path) => {
    const gc = (...args: string[]) =>
      inProcess(["gc", "--environments", "--home", `${dir}/home`, ...args]);
    const dry = JSON.parse((await gc("--json", "--dry-run")).out);
    deepStrictEqual(dry, {
      dry_run: true,
      environments: { count: 0, bytes: 0 },
      leftovers: { count: 1, bytes: 5 },
      cache: { count: 0, bytes: 0 },
      bytes: 5,
      kept: [],
    });
    strictEqual((await Deno.stat(path)).isDirectory, true);
    const { out } = await gc();
    match(out, /^leftovers +1 +5 B$/m);
    match(out, /\nfreed 5 B\n$/);
    deepStrictEqual(
      [...Deno.readDirSync(dir)].map(({ name }) => name),
      ["vllm_cpu-cpython3.11-0123456789ab.lock"],
    );
  }));

Deno.test("gc --environments refuses what is about runs", async () => {
  for (const option of [["--rows"], ["--accept", "0"], ["--logs-older-than", "1"], ["a_run"]]) {
    const { code, err } = await inProcess(["gc", "--environments", ...option]);
    strictEqual(code, 2, err);
    match(err, /^Cannot collect runs and environments together .*Fix: run `gc --environments`/);
  }
});
