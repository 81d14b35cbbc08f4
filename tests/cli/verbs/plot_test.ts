import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { rowsOf } from "../../flows/fixtures.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";
import { decodedPng } from "../../runs/plots/decoded_png.ts";
import { inProcess } from "../in_process.ts";

/** Two runs of three rounds, and one that has not begun. */
async function trained() {
  const home = await freshFakeHome();
  const path = `${home.dir}/train.jsonl`;
  const data = { train: [{ path }], eval: [{ path }], on_long_prompt: "unchecked" };
  for (const id of ["a", "b"]) {
    await createFakeRun(home, id, { rounds: 3, evaluate: { problems: 2 }, data });
    await executeFake(home, id, { rows: { train: rowsOf(16), eval: rowsOf(4) } });
  }
  await createFakeRun(home, "new", {});
  const rl = (...args: string[]) => inProcess(args, { home });
  return { dir: home.dir, rl, plot: (...args: string[]) => rl("plot", ...args) };
}

const { dir, rl, plot } = await trained();

/** The points that a plot of one metric draws, by run. */
async function points(...args: string[]) {
  const [{ runs, x }] = JSON.parse((await plot(...args, "--json")).out).plots;
  return { x, runs: runs as { run: string; points: Record<string, number>[] }[] };
}

Deno.test("plot draws each run on 80 columns of a pipe, without colours", async () => {
  const { code, out } = await plot("a", "reward/mean", "b");
  strictEqual(code, 0);
  const plots = out.trimEnd().split("\n\n").map((one) => one.split("\n"));
  deepStrictEqual(plots.map(([title]) => title), [
    "reward/mean of a, by round",
    "reward/mean of b, by round",
  ]);
  strictEqual(Math.max(...plots.flat().map((line) => [...line].length)), 80);
  match(out, /[⠁-⣿]/);
  ok(!out.includes("\x1b"));
});

Deno.test("plot --json has the points that metrics has, and the means, of the last rounds", async () => {
  const recorded = JSON.parse((await rl("metrics", "a", "reward/mean", "--json")).out).points as {
    round: number;
    metrics: Record<string, number>;
  }[];
  const all = recorded.map(({ round, metrics }) => ({ x: round, y: metrics["reward/mean"]! }));
  deepStrictEqual(await points("a", "reward/mean", "a"), {
    x: "round",
    runs: [{ run: "a", points: all }],
  });
  const { runs: [a, b] } = await points("a", "reward/mean", "b", "--last", "2", "--smooth", "2");
  const [before, last] = all.slice(1);
  const mean = (before!.y + last!.y) / 2;
  deepStrictEqual(a!.points, [{ ...before!, mean }, { ...last!, mean: last!.y }]);
  strictEqual(b!.points.length, 2);
});

Deno.test("plot --x is what was asked for, or what the metric has", async () => {
  strictEqual((await points("a", "eval/after_greedy/mean_reward")).x, "step");
  const tokens = (await points("a", "reward/mean", "--x", "tokens")).runs[0]!.points;
  const trained = await points("a", "perf/trained_tokens");
  let sum = 0;
  deepStrictEqual(tokens.map(({ x }) => x), trained.runs[0]!.points.map(({ y }) => sum += y!));
  const hours = (await points("a", "perf/generated_tokens", "--x", "hours")).runs[0]!.points;
  strictEqual(hours[0]!.x, 0); // No metric is earlier.
});

Deno.test("plot draws a plot for each metric of a pattern", async () => {
  const { plots } = JSON.parse((await plot("a", "reward/*", "b", "--json")).out);
  ok(plots.length > 1);
  ok(plots.every(({ metric }: { metric: string }) => metric.startsWith("reward/")));
});

Deno.test("plot writes pictures, and replaces one only with --force", async () => {
  const [svg, png] = [`${dir}/p.svg`, `${dir}/p.png`];
  const { code, out, err } = await plot("a", "reward/mean", "b", "--svg", svg, "--png", png);
  deepStrictEqual([code, out, err], [0, "", `wrote ${svg}\nwrote ${png}\n`]);
  const picture = await Deno.readTextFile(svg);
  match(picture, />reward\/mean<.*>● a<.*>● b</s);
  strictEqual(decodedPng(await Deno.readFile(png)).width, 1280);
  const again = await plot("a", "reward/std", "--svg", svg);
  strictEqual(again.code, 2);
  match(again.err, /Cannot write .*p\.svg because it exists/);
  strictEqual(await Deno.readTextFile(svg), picture);
  strictEqual((await plot("a", "reward/std", "--svg", svg, "--force")).code, 0);
  match(await Deno.readTextFile(svg), />reward\/std</);
});

Deno.test("plot refuses what it cannot draw, in one sentence, and writes nothing", async () => {
  const file = `${dir}/none.svg`;
  const cases: [args: string[], message: RegExp][] = [
    [["a", "rewad/mean"], /run 'a' has no such metric \(did you mean reward\/mean\?\)/],
    [["new", "reward/mean"], /run 'new' has no metric yet/],
    [["a", "reward/mean", "new"], /run 'new' has no metric yet/],
    [["c", "reward/mean"], /Cannot find run 'c'/],
    [["reward/mean", "a"], /the run comes first: plot RUN reward\/mean/],
    [["a", "reward/*"], /it shows one metric, and the pattern stands for \d+: name one of reward/],
    [["a", "reward/mean", "--x", "rounds"], /Cannot use 'rounds' for --x \(did you mean round\?\)/],
    [["a", "eval/after_greedy/mean_reward", "--x", "round"], /measured in no round. Fix: --x step/],
    [["a", "reward/mean", ..."bcdefghi"], /Cannot plot 9 runs because a plot has 8 colours/],
    [["a", "reward/mean", "--svg", `${dir}/no/a.svg`], /its directory does not exist/],
    [["a", "reward/mean", "--png", file], /as SVG and as PNG because it is one file: name two/],
  ];
  for (const [args, message] of cases) {
    const { code, out, err } = await plot("--svg", file, ...args);
    deepStrictEqual([code, out, err.trimEnd().split("\n").length], [2, "", 1], err);
    match(err, message);
  }
  ok(!(await Array.fromAsync(Deno.readDir(dir))).some(({ name }) => name.startsWith("none.svg")));
});
