import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import { createFakeRun, executeFake, freshFakeHome } from "../runs/fake_home.ts";
import { inProcess } from "./in_process.ts";

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
