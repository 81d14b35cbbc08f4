import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { FLOWS } from "../../configs/mod.ts";
import { tableOf } from "../../data/mod.ts";
import { Engine, type RunHead } from "../../engine/mod.ts";
import { flowDefinition } from "../../flows/mod.ts";
import { compareEvaluations, type Home } from "../../runs/mod.ts";
import { fakeRun, FakeSampler } from "../../testing/mod.ts";
import { inProcess } from "../cli/in_process.ts";
import { freshFakeHome } from "./fake_home.ts";

const home = await freshFakeHome();

/** An evaluation of problems 0, 1, ... whose answers are these. */
async function evaluated(id: string, answers: string[], from = 0): Promise<RunHead> {
  const { store, artifacts } = home as Home;
  const config = FLOWS.evaluate.parse({
    flow: "evaluate",
    model: { path: `${home.dir}/model` },
    reward: [{ name: "exact_match" }],
    data: { eval: [{ path: "e" }], on_long_prompt: "unchecked" },
  });
  const rows = answers.map((_, n) => ({
    row_id: `row-${from + n}`,
    prompt: "p",
    answer: "1",
    columns: {},
  }));
  const { resources } = await fakeRun({
    store,
    artifacts,
    run: id,
    dir: `${home.dir}/work/${id}`,
    rows: { eval: tableOf(rows, id) },
    samplers: [new FakeSampler({ complete: ({ draw }) => answers[draw]! })],
  });
  const engine = new Engine({ store, artifacts, resources });
  const definition = flowDefinition("evaluate");
  await engine.create(definition, config, { id });
  const outcome = await engine.execute(id, definition.build(config));
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  return (await store.head(id))!;
}

await evaluated("base", ["1", "0", "0", "0"]);
await evaluated("tuned", ["1", "1", "1", "0"]);
await evaluated("shifted", ["1", "1", "1", "0"], 2);

Deno.test("compareEvaluations() pairs problems by their row ids", async () => {
  const [compared] = await compareEvaluations(home, ["base", "tuned/eval_greedy"]);
  const { a, b, only_a, measures: [accuracy] } = compared!;
  deepStrictEqual([a, b, only_a], ["base/eval_greedy", "tuned/eval_greedy", 0]);
  const { interval, ...rest } = accuracy!;
  deepStrictEqual(rest, {
    measure: "accuracy",
    problems: 4,
    a: 0.25,
    b: 0.75,
    difference: 0.5,
    better: 2,
    worse: 0,
    equal: 2,
  });
  deepStrictEqual(interval, [0, 1]);
  const [shifted] = await compareEvaluations(home, ["base", "shifted"]);
  deepStrictEqual([shifted!.only_a, shifted!.only_b, shifted!.measures[0]!.problems], [2, 2, 2]);
});

Deno.test("an evaluation does not differ from itself", async () => {
  const [same] = await compareEvaluations(home, ["tuned", "tuned"]);
  deepStrictEqual(same!.measures.map(({ difference, interval }) => [difference, interval]), [
    [0, [0, 0]],
    [0, [0, 0]],
  ]);
});

Deno.test("compareEvaluations() says what a run has instead", async () => {
  await rejects(compareEvaluations(home, ["base"]), /name at least two/);
  await rejects(compareEvaluations(home, ["base", "tuned/none"]), /no such .*: it has eval_greedy/);
});

Deno.test("eval --compare shows each with the first, or as JSON", async () => {
  const { code, out } = await inProcess(["eval", "--compare", "base", "tuned", "shifted"], {
    home,
  });
  strictEqual(code, 0);
  match(out, /^a {2}base\/eval_greedy\nb {2}tuned\/eval_greedy\nmeasure +problems/);
  match(out, /accuracy +4 +0\.250 +0\.750 +\+0\.500 +0\.000 to \+1\.000 +2 +0 +2/);
  match(out, /b {2}shifted\/eval_greedy\nonly in a: 2, only in b: 2 problems/);
  const json = JSON.parse(
    (await inProcess(["eval", "--compare", "base", "tuned", "--json"], { home }))
      .out,
  );
  strictEqual(json[0].measures[0].difference, 0.5);
});
