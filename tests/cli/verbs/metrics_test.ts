import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { parse } from "csv-parse/sync";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { inProcess } from "../in_process.ts";

async function trained() {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 3 });
  await executeFake(home, "a");
  return (...args: string[]) => inProcess(["metrics", ...args], { home });
}

Deno.test("metrics lists what a run measured, and shows the values of some by round", async () => {
  const metrics = await trained();
  const { code, out } = await metrics("a");
  strictEqual(code, 0);
  match(out, /^metric +values +first +last +lowest +highest$/m);
  match(out, /^reward\/mean +3( +[\d.e-]+){4}$/m);

  const { points } = JSON.parse((await metrics("a", "reward/mean", "--json")).out);
  deepStrictEqual(
    points.map(({ step, loop, round }: Record<string, unknown>) => [step, loop, round]),
    [[1, "round", 1], [2, "round", 2], [3, "round", 3]],
  );
  ok(points.every((point: { metrics: object }) => "reward/mean" in point.metrics));

  const table = (await metrics("a", "reward/mean", "--last", "2")).out.trimEnd().split("\n");
  match(table[0]!, /^step +round +reward\/mean$/);
  deepStrictEqual(table.slice(1).map((line) => line.split(/ {2,}/).slice(0, 2)), [
    ["2", "round 2"],
    ["3", "round 3"],
  ]);
});

Deno.test("metrics --csv is what was recorded, unrounded, and * stands for any text", async () => {
  const metrics = await trained();
  const rows = parse((await metrics("a", "reward/*", "--csv")).out, { columns: true }) as Record<
    string,
    string
  >[];
  const { points } = JSON.parse((await metrics("a", "reward/*", "--json")).out);
  deepStrictEqual(rows.map((row) => row["reward/mean"]), points.map(text("reward/mean")));
  const [first] = rows;
  deepStrictEqual(Object.keys(first!).slice(0, 4), ["step", "loop", "round", "at_ms"]);
  ok(Object.keys(first!).slice(4).every((name) => name.startsWith("reward/")));
});

Deno.test("metrics names a metric that a run lacks, and a run without any", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "new", {});
  const metrics = (...args: string[]) => inProcess(["metrics", ...args], { home });
  strictEqual((await metrics("new")).out, "no metric yet\n");
  strictEqual((await metrics("new", "--csv")).out, "step,loop,round,at_ms\n");
  const { code, err } = await (await trained())("a", "rewad/mean");
  strictEqual(code, 2);
  match(
    err,
    /Cannot show 'rewad\/mean' because run 'a' has no such metric \(did you mean reward\/mean\?\): 'metrics a' lists what it has/,
  );
  strictEqual((await metrics("none")).code, 2);
  match((await metrics("reward/*")).err, /because the run comes first: metrics RUN reward\/\*/);
});

function text(name: string) {
  return ({ metrics }: { metrics: Record<string, number> }) => String(metrics[name]);
}
