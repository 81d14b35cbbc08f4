import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import type { RunHead } from "../../../engine/mod.ts";
import { forkRun, type Home } from "../../../runs/mod.ts";
import { type TrackPoint, TrackPoints } from "../../../runs/tracking/track_points.ts";
import { MemoryStore } from "../../../testing/mod.ts";
import { rowsOf } from "../../flows/fixtures.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

async function finished(): Promise<Home> {
  const home = await freshFakeHome();
  const path = `${home.dir}/train.jsonl`;
  const data = { train: [{ path }], eval: [{ path }], on_long_prompt: "unchecked" };
  await createFakeRun(home, "a", { rounds: 3, evaluate: { problems: 2 }, data });
  await executeFake(home, "a", { rows: { train: rowsOf(16), eval: rowsOf(4) } });
  return home;
}

async function pointsOf(
  home: Pick<Home, "store" | "artifacts">,
  run: string,
): Promise<TrackPoint[]> {
  const points = new TrackPoints(home, (await home.store.head(run))!);
  return (await Array.fromAsync(points.next())).flat();
}

Deno.test("a round is one point, and a metric has one value at a step", async () => {
  const home = await finished();
  const points = await pointsOf(home, "a");
  deepStrictEqual(points.map(({ number }) => number), points.map((_, i) => i + 1));
  const places = points.map(({ step, round }) => [step, round?.round ?? null]);
  deepStrictEqual(places, [[0, null], [0, null], [1, 1], [2, 2], [3, 3], [3, null], [3, null]]);
  const named = points.flatMap(({ step, metrics }) =>
    Object.keys(metrics).map((name) => `${step} ${name}`)
  );
  strictEqual(new Set(named).size, named.length);
  ok("policy/loss" in points[2]!.metrics && "reward/mean" in points[2]!.metrics);
  ok(named.includes("3 eval/after_greedy/graded"));
});

Deno.test("times and tokens of a round's slabs are summed", async () => {
  const home = await finished();
  const rows = await home.store.read("a", { kinds: ["metrics"], prefix: "round/1/generate_slab" });
  ok(rows.length > 1);
  const tokens = rows.map(({ value }) => JSON.parse(value).metrics["perf/generated_tokens"]);
  const [first] = (await pointsOf(home, "a")).filter(({ round }) => round?.round === 1);
  strictEqual(first!.metrics["perf/generated_tokens"], tokens.reduce((sum, n) => sum + n, 0));
});

Deno.test("points that are read as they are recorded are those read at the end", async () => {
  const home = await finished();
  const rows = (home.store as MemoryStore).rows("a");
  const head = (await home.store.head("a"))!;
  let until = 0;
  const growing = {
    artifacts: home.artifacts,
    store: Object.assign(Object.create(home.store), {
      read: async (...args: Parameters<MemoryStore["read"]>) =>
        (await home.store.read(...args)).filter(({ seq }) => seq <= until),
    }),
  };
  const points = new TrackPoints(growing, head);
  const found: TrackPoint[] = [];
  for (until = 0; until <= rows.length; until += 7) {
    found.push(...(await Array.fromAsync(points.next())).flat());
  }
  until = rows.length;
  found.push(...(await Array.fromAsync(points.next())).flat());
  deepStrictEqual(found, await pointsOf(home, "a"));
});

Deno.test("an evaluation before training is at step 0, although round 1 closed before it ended", async () => {
  const home = await finished();
  const rows = (home.store as MemoryStore).rows("a");
  const late = rows.filter(({ kind, key }) => kind === "metrics" && key === "summarise_evaluation");
  const end = rows.findIndex(({ kind, key }) => kind === "round" && key === "round/2");
  const others = (some: typeof rows) => some.filter((row) => !late.includes(row));
  const moved = [...others(rows.slice(0, end + 1)), ...late, ...others(rows.slice(end + 1))]
    .map((row, i) => ({ ...row, seq: i + 1 }));
  const reordered = {
    artifacts: home.artifacts,
    store: Object.assign(Object.create(home.store), {
      head: (run: string) => home.store.head(run),
      read: (_: string, { kinds, after_seq = 0 }: { kinds?: string[]; after_seq?: number }) =>
        Promise.resolve(
          moved.filter(({ kind, seq }) => seq > after_seq && (kinds?.includes(kind) ?? true)),
        ),
    }),
  };
  const points = await pointsOf(reordered, "a");
  const places = points.map(({ step, round }) => [step, round?.round ?? null]);
  deepStrictEqual(places, [[0, null], [1, 1], [2, 2], [0, null], [3, 3], [3, null], [3, null]]);
  const named = points.flatMap(({ step, metrics }) =>
    Object.keys(metrics).map((name) => `${step} ${name}`)
  );
  strictEqual(new Set(named).size, named.length);
  ok("eval/before_greedy/graded" in points[3]!.metrics);
});

Deno.test("a fork has its parent's points up to its round, then its own", async () => {
  const home = await finished();
  const parent: RunHead = (await home.store.head("a"))!;
  await forkRun(home, parent, { round: 2, id: "b", overrides: ["rounds=4"] });
  await executeFake(home, "b", { rows: { train: rowsOf(16), eval: rowsOf(4) } });
  const points = await pointsOf(home, "b");
  deepStrictEqual(points.map(({ number }) => number), points.map((_, i) => i + 1));
  const rounds = (of: TrackPoint[]) => of.filter(({ round }) => round !== null);
  deepStrictEqual(rounds(points).map(({ step, round }) => [step, round!.round]), [
    [1, 1],
    [2, 2],
    [3, 3],
    [4, 4],
  ]);
  deepStrictEqual(rounds(points).slice(0, 2).map(({ metrics }) => metrics), [
    ...rounds(await pointsOf(home, "a")).slice(0, 2).map(({ metrics }) => metrics),
  ]);
});
