import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { type NewRow, processOwner } from "../../../engine/mod.ts";
import { forkRun, type Home } from "../../../runs/mod.ts";
import type { MetricsLine } from "../../../runs/tracking/run_metrics.ts";
import { inheritedPages, lastMetrics, ownPages } from "../../../runs/tracking/run_metrics.ts";
import type { MemoryStore } from "../../../testing/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

/** A run with `count` rows of metrics, of which the n-th is of round n. */
async function recorded(count: number): Promise<Home> {
  const home = await freshFakeHome();
  await createFakeRun(home, "a");
  const { epoch } = (await home.store.claim("a", processOwner(), { lease_ms: 60_000 })).head;
  const rows = Array.from({ length: count }, (_, i): NewRow => {
    const where = { loop: "round", round: i + 1, stage: "one", version: null, at_ms: 0 };
    const metrics = { [`of/${i % 2}`]: i };
    return {
      kind: "metrics",
      key: `round/${i + 1}/one`,
      value: JSON.stringify({ ...where, metrics }),
    };
  });
  await home.store.append("a", epoch, rows);
  return home;
}

/** The rounds of each page that is not empty. */
async function rounds(pages: AsyncIterable<{ line: MetricsLine }[]>): Promise<number[][]> {
  const all = await Array.fromAsync(pages, (page) => page.map(({ line }) => line.round!));
  return all.filter(({ length }) => length > 0);
}

const upTo = (last: number, first = 1) =>
  Array.from({ length: last - first + 1 }, (_, i) => first + i);

Deno.test("ownPages() reads a long run in pages of 1000 lines, each line once", async () => {
  const pages = await rounds(ownPages(await recorded(2300), "a"));
  deepStrictEqual(pages, [upTo(1000), upTo(2000, 1001), upTo(2300, 2001)]);
});

Deno.test("ownPages() reads on after a line that was read", async () => {
  const home = await recorded(5);
  const [page] = await Array.fromAsync(ownPages(home, "a"));
  deepStrictEqual(await rounds(ownPages(home, "a", page![2]!.seq)), [[4, 5]]);
  deepStrictEqual(await rounds(ownPages(home, "a", page![4]!.seq)), []);
});

Deno.test("ownPages() leaves out a line that is damaged, and no other", async () => {
  const home = await recorded(4);
  const rows = await home.store.read("a", { kinds: ["metrics"] });
  (home.store as MemoryStore).damage("a", { seq: rows[1]!.seq, value: "{" });
  deepStrictEqual(await rounds(ownPages(home, "a")), [[1, 3, 4]]);
});

Deno.test("lastMetrics() has the newest value of each metric", async () => {
  const home = await recorded(5);
  const head = (await home.store.head("a"))!;
  deepStrictEqual(await lastMetrics(home, head), { "of/0": 4, "of/1": 3 });
});

Deno.test("a fork inherits the lines up to its round, and begins with their values", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 4 });
  await executeFake(home, "a");
  const fork = await forkRun(home, (await home.store.head("a"))!, { round: 2, id: "b" });
  const parents = (await Array.fromAsync(ownPages(home, "a"))).flat();
  const shared = parents.filter(({ line }) => line.round! <= 2);
  deepStrictEqual((await Array.fromAsync(inheritedPages(home, fork))).flat(), shared);
  deepStrictEqual((await Array.fromAsync(ownPages(home, "b"))).flat(), []);
  deepStrictEqual(
    await lastMetrics(home, fork),
    Object.assign({}, ...shared.map(({ line }) => line.metrics)),
  );
  strictEqual(parents.length, 2 * shared.length);
});
