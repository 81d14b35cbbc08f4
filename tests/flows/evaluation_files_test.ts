/** Several evaluation files are several results, in every flow that evaluates. */
import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { runText } from "../../cli/display/run_text.ts";
import { batchArithmetic } from "../../cli/verbs/plan.ts";
import { type Config, FLOWS, parseConfig } from "../../configs/mod.ts";
import { Engine, InvalidInputError, type RunHead } from "../../engine/mod.ts";
import { flowDefinition, SHIPPED } from "../../flows/mod.ts";
import {
  checkRewards,
  createRun,
  type Home,
  recordedDefinition,
  rowTables,
  type RunView,
  runView,
} from "../../runs/mod.ts";
import { fakeRun, FakeSampler } from "../../testing/mod.ts";
import { freshFakeHome } from "../runs/fake_home.ts";

const NONE = { workers: [], metrics: {} };

/**
 * A home with files of rows to train on and to evaluate on: `math` has two problems, `sums` three.
 */
async function homeWithFiles(
  work: (home: Home, files: Record<string, string>) => Promise<void>,
): Promise<void> {
  const home = await freshFakeHome();
  const rows = (kind: string, answers: number[]) =>
    answers.map((answer, n) =>
      JSON.stringify({ id: `${kind}${n}`, prompt: "p", answer, completion: "c" }) + "\n"
    ).join(
      "",
    );
  const pairs = (ids: number[]) =>
    ids.map((n) =>
      JSON.stringify({ id: `pair${n}`, prompt: "p", chosen: `${n} good`, rejected: `${n} bad` }) +
      "\n"
    )
      .join("");
  const texts = {
    train: rows("train", [0, 1, 2, 3]),
    math: rows("math", [0, 1]),
    sums: rows("sums", [9, 1, 9]),
    train_pairs: pairs([0, 1, 2, 3]),
    pairs_a: pairs([0, 1]),
    pairs_b: pairs([2, 3, 4]),
  };
  try {
    const files: Record<string, string> = {};
    for (const [name, text] of Object.entries(texts)) {
      files[name] = `${home.dir}/${name}.jsonl`;
      await Deno.writeTextFile(files[name]!, text);
    }
    await work(home, files);
  } finally {
    await Deno.remove(home.dir, { recursive: true });
  }
}

/** Answers a problem's place: `math` is all right, `sums` a third. */
const complete = ({ draw }: { draw: number }) => String(draw);

/** One engine's start at a recorded run, with the rows that its own configuration names. */
async function execute(
  home: Home,
  id: string,
): Promise<{ head: RunHead; view: RunView; metrics: string[] }> {
  const { store, artifacts } = home;
  const head = (await store.head(id))!;
  const { definition, config } = await recordedDefinition(store, head);
  const rows = await rowTables(JSON.parse(head.config), { home: home.dir });
  const samplers = [new FakeSampler({ complete })];
  const { resources } = await fakeRun({
    store,
    artifacts,
    run: id,
    dir: `${home.dir}/work/${id}`,
    rows,
    samplers,
  });
  const outcome = await new Engine({ store, artifacts, resources }).execute(
    id,
    definition.build(config),
  );
  strictEqual(outcome.status, "done", JSON.stringify(outcome));
  const recordedNames = (await store.read(id, { kinds: ["metrics"] })).flatMap(({ value }) =>
    metricNames(JSON.parse(value))
  );
  const ended = (await store.head(id))!;
  return {
    head: ended,
    view: await runView(store, ended, NONE),
    metrics: [...new Set(recordedNames)].sort(),
  };
}

function metricNames(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, of]) =>
    typeof of === "number" ? [name] : metricNames(of)
  );
}

async function run(home: Home, id: string, config: Record<string, unknown>) {
  const flow = config.flow as Config["flow"];
  await createRun(home, flowDefinition(flow), {
    config: FLOWS[flow].parse(config) as Config,
    id,
    entry: `${SHIPPED}${flow}`,
  });
  return await execute(home, id);
}

const evaluateConfig = (home: Home, paths: (string | object)[], evaluate: object = {}) => ({
  flow: "evaluate",
  model: { path: `${home.dir}/model` },
  reward: [{ name: "exact_match" }],
  evaluate,
  data: { eval: paths.map((path) => typeof path === "string" ? { path } : path) },
});

Deno.test("evaluate has separate results for each file, by its name", async () => {
  await homeWithFiles(async (home, { math, sums }) => {
    const paths = [math!, { path: sums, name: "own" }];
    const { view, metrics } = await run(
      home,
      "r",
      evaluateConfig(home, paths, { samples_per_prompt: 2 }),
    );
    const summaries = view.evaluations.map((
      { name, problems, right, avg_at_k },
    ) => [name, problems, right, avg_at_k]);
    deepStrictEqual(summaries, [
      ["math/eval_greedy", 2, 2, 1],
      ["math/eval_sampled", 2, 4, 1],
      ["own/eval_greedy", 3, 1, 1 / 3],
      ["own/eval_sampled", 3, 2, 1 / 3],
    ]);
    const evals = metrics.filter((name) => name.startsWith("eval/"));
    deepStrictEqual(evals.filter((name) => name.endsWith("/avg_at_2")), [
      "eval/math/eval_sampled/avg_at_2",
      "eval/own/eval_sampled/avg_at_2",
    ]);
    strictEqual(
      evals.every((name) => /^eval\/(math|own)\/eval_(greedy|sampled)\//.test(name)),
      true,
    );
    const lines = runText(view, home).split("\n").filter((line) => line.startsWith("evaluation"));
    match(lines[0]!, /^evaluation math\/eval_greedy: 1\.000 right \(2 of 2\)/);
    match(lines[2]!, /^evaluation own\/eval_greedy: 0\.333 right \(1 of 3\)/);
  });
});

Deno.test("evaluate applies `problems` to each file, unless they are together", async () => {
  await homeWithFiles(async (home, { math, sums }) => {
    const apart = await run(home, "apart", evaluateConfig(home, [math!, sums!], { problems: 1 }));
    deepStrictEqual(apart.view.evaluations.map(({ name, problems }) => [name, problems]), [
      ["math/eval_greedy", 1],
      ["sums/eval_greedy", 1],
    ]);
    const config = evaluateConfig(home, [math!, sums!], { files: "together", problems: 4 });
    const together = await run(home, "together", config);
    deepStrictEqual(
      together.view.evaluations.map(({ name, problems, right }) => [name, problems, right]),
      [
        ["eval_greedy", 4, 2],
      ],
    );
    const one = await run(home, "one", evaluateConfig(home, [math!]));
    deepStrictEqual(one.view.evaluations.map(({ name }) => name), ["eval_greedy"]);
    strictEqual(one.head.graph, together.head.graph);
    const shown = (config: object) => batchArithmetic(FLOWS.evaluate.parse(config));
    deepStrictEqual(shown(evaluateConfig(home, [math!, sums!])), [
      "all problems of each of 2 files x 1 samples",
    ]);
    deepStrictEqual(shown(evaluateConfig(home, [math!])), ["all problems x 1 samples"]);
  });
});

Deno.test("every flow evaluates each file before and after training", async () => {
  await homeWithFiles(async (home, { train, math, sums, train_pairs, pairs_a, pairs_b }) => {
    const model = { path: `${home.dir}/model` };
    const trainer = { optimizer: { lr: 0.1 } };
    const data = { train: [{ path: train }], eval: [{ path: math }, { path: sums }] };
    const reward = [{ name: "exact_match" }];
    const common = { model, trainer, data, reward, rounds: 1, evaluate: {} };
    const online = {
      ...common,
      flow: "online",
      prompts_per_round: 2,
      samples_per_prompt: 2,
      algorithm: { name: "grpo" },
    };
    const labels = [
      "math/before_greedy",
      "sums/before_greedy",
      "math/after_greedy",
      "sums/after_greedy",
    ];
    for (const config of [online, { ...common, flow: "supervised", rows_per_round: 2 }]) {
      const { view } = await run(home, config.flow, config);
      deepStrictEqual(view.evaluations.map(({ name }) => name), labels);
      deepStrictEqual(view.evaluations.map(({ problems }) => problems), [2, 3, 2, 3]);
    }
    const held = { train: [{ path: train_pairs }], eval: [{ path: pairs_a }, { path: pairs_b }] };
    const preference = { flow: "preference", model, trainer, rounds: 1, pairs_per_round: 2 };
    const apart = await run(home, "apart", { ...preference, data: held, evaluate: {} });
    deepStrictEqual(apart.view.evaluations.map(({ name, pairs }) => [name, pairs]), [
      ["pairs_a/before", 2],
      ["pairs_b/before", 3],
      ["pairs_a/after", 2],
      ["pairs_b/after", 3],
    ]);
    const pairMetrics = (metrics: string[]) => metrics.filter((name) => name.startsWith("eval/"));
    deepStrictEqual(pairMetrics(apart.metrics), [
      "eval/pairs_a/pair_accuracy",
      "eval/pairs_a/pair_margin",
      "eval/pairs_b/pair_accuracy",
      "eval/pairs_b/pair_margin",
    ]);
    const together = await run(home, "together", {
      ...preference,
      data: held,
      evaluate: { files: "together" },
    });
    deepStrictEqual(together.view.evaluations.map(({ name, pairs }) => [name, pairs]), [[
      "before",
      5,
    ], ["after", 5]]);
    deepStrictEqual(pairMetrics(together.metrics), ["eval/pair_accuracy", "eval/pair_margin"]);
  });
});

Deno.test("a broken row of any evaluation file is named before a run", async () => {
  await homeWithFiles(async (home, { math, train }) => {
    const broken = `${home.dir}/broken.jsonl`;
    await Deno.writeTextFile(broken, `{"id":"b","prompt":"p"}\n`);
    const config = FLOWS.evaluate.parse(evaluateConfig(home, [math!, broken]));
    const rows = await rowTables(config, { home: home.dir });
    await rejects(checkRewards(config, { rows }), (error: Error) => {
      strictEqual(error instanceof InvalidInputError, true);
      match(
        error.message,
        /first one is row 'b' of data\.eval\[1\]: .* the field .* in data\.eval\[1\]\.fields$/,
      );
      return true;
    });
    // The same ids in two files are no clash where results are apart.
    const twice = evaluateConfig(home, [math!, { path: train, name: "again" }]);
    const apart = await rowTables(FLOWS.evaluate.parse(twice), { home: home.dir });
    deepStrictEqual(Object.keys(apart), ["eval/math", "eval/again"]);
  });
});

Deno.test("two evaluated files of one name are refused unless together", async () => {
  const dir = await Deno.makeTempDir();
  try {
    for (const place of ["a", "b"]) {
      await Deno.mkdir(`${dir}/${place}`);
      await Deno.writeTextFile(`${dir}/${place}/test.jsonl`, `{"prompt":"p","answer":"1"}\n`);
    }
    const text = `flow: preference\nrounds: 1\npairs_per_round: 1\nmodel: { recipe: tiny_qwen }\n` +
      `data: { train: a/test.jsonl, eval: [a/test.jsonl, b/test.jsonl] }\n`;
    const read = (evaluate: string) =>
      parseConfig(text + evaluate, { file: `${dir}/c.yaml`, overrides: [], cwd: dir });
    await rejects(
      read("evaluate: {}\n"),
      /c\.yaml:5:\d+ data\.eval\.1: .*"test", as those of .*a\/test\.jsonl are; give it/,
    );
    await read("evaluate: { files: together }\n");
    await read("");
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
