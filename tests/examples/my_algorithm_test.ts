/**
 * Adding an algorithm: what it touches, in TypeScript and in Python, and that it then is one like
 * the others.
 */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { my_algorithm } from "../../examples/my_algorithm.ts";
import { testProperties } from "../algs/properties/properties.ts";
import { pythonFile } from "../algs/properties/python_file.ts";
import { cutsOf, randomStep } from "../algs/properties/steps.ts";
import { traced } from "../algs/properties/traced.ts";
import { rl, show } from "../crash/runs.ts";
import { copyTree, denoIn, differing } from "../copy_tree.ts";
import { ensureTestEnvironments } from "../environments.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const EXAMPLE = `${ROOT}examples/my_algorithm`;

/** In the room of the algorithms a file imports its neighbours, not the whole product. */
const NEIGHBOURS = `import { z } from "zod";
import { defineAlgorithm } from "./algorithm.ts";
import { groupZscore } from "./credit/baselines.ts";
import { perSequenceMean, sequenceMean, tokenMean, where } from "./language/mod.ts";`;

const python = await pythonFile(`${EXAMPLE}.py`);
const typescript = traced(my_algorithm);
testProperties(python);

Deno.test("my_algorithm.py has the loss, metrics and gradient of my_algorithm.ts", async () => {
  const cases = [1, 2, 3].map((seed) => {
    const step = randomStep(seed, { pairs: false, empty: seed === 3 });
    return { step, cuts: cutsOf(step.sequences.length, { pairs: false }) };
  });
  for (const [i, variant] of python.variants.entries()) {
    const losses = [variant, typescript.variants[i]!].map(({ losses }) => losses[0]!);
    const [ours, theirs] = await Promise.all(losses.map((loss) => loss.differentiate(cases)));
    const numbers = (all: typeof ours) =>
      all!.flat().flatMap(({ loss, metrics, gradients }) =>
        [loss, ...Object.values(metrics), gradients.logp!].flat(3)
      );
    for (const [k, value] of numbers(ours).entries()) {
      const other = numbers(theirs)[k]!;
      ok(
        Math.abs(value - other) <= 1e-12 * Math.max(Math.abs(other), 1e-3),
        `${value} in Python, ${other}`,
      );
    }
  }
});

Deno.test("my_algorithm.ts joins with its file and its line: the rest is generated", async (t) => {
  const dir = `${await Deno.makeTempDir({ prefix: "holdfast-algorithm-" })}/`;
  try {
    await copyTree(ROOT, dir);
    await addTo(dir);
    deepStrictEqual(await differing(ROOT, dir), TOUCHED);
    const page = `${dir}docs/algorithms/my_algorithm.md`;
    const edit = "**When:** a clip cuts off too much.";
    for (const there of [false, true]) {
      const generated = await denoIn(dir, ["run", "-A", "docs/generate/write_schemas.ts"]);
      ok(generated.ok, generated.output);
      deepStrictEqual(await differing(ROOT, dir), [...TOUCHED, ...GENERATED].sort());
      const text = await Deno.readTextFile(page);
      if (there) ok(text.includes(edit), "a page that exists is kept");
      else await Deno.writeTextFile(page, text.replace(/^\*\*When:.*$/m, edit));
    }
    for (const [what, args] of Object.entries(CHECKS)) {
      await t.step(what, async () => {
        const { ok: good, output } = await denoIn(dir, args);
        ok(good && !output.includes("| 0 passed"), output);
      });
    }
    await t.step("it trains in the graph that ships, over fake workers", async () => {
      await Deno.writeTextFile(`${dir}tests/flows/short_training.ts`, TRAINING);
      const { ok: good, output } = await denoIn(dir, [
        "run",
        "-A",
        "--no-check",
        "tests/flows/short_training.ts",
      ]);
      ok(good, output);
      deepStrictEqual(JSON.parse(output.trimEnd().split("\n").at(-1)!), {
        status: "done",
        trained: 3,
      });
    });
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("my_algorithm.py trains the quickstart's model as its run was recorded", async () => {
  await ensureTestEnvironments();
  const home = await Deno.makeTempDir({ prefix: "holdfast-algorithm-" });
  try {
    const sizes = ["warmup.rounds=2", "online.rounds=2", "checkpoints.every_rounds=2"];
    const settings = ["algorithm=examples/my_algorithm.py", "algorithm.tau_negative=1.2"];
    const run = [
      "run",
      "configs/quickstart_small.yaml",
      ...sizes,
      ...settings,
      "--id",
      "mine",
      "--home",
      home,
    ];
    const ended = await rl(run, {});
    strictEqual(ended.code, 0, ended.output);
    const { status, round, metrics } = await show(home, "mine");
    deepStrictEqual([status, round], ["done", 2]);
    strictEqual(metrics["policy/ratio"], 1, "one step of the policy that sampled");
    const verified = await rl(["verify", "mine", "--home", home], {});
    strictEqual(verified.code, 0, verified.output);

    const args = [
      "examples/my_algorithm.py",
      "tau_negative=1.2",
      "--batch",
      "mine/2",
      "--json",
      "--home",
      home,
    ];
    const tried = await rl(["loss", "try", ...args], {});
    strictEqual(tried.code, 0, tried.output);
    const { losses: [{ loss, rows }], notes } = JSON.parse(tried.output);
    ok(
      Math.abs(loss - metrics["policy/loss"]!) < 1e-3,
      "of the same batch, but for the sampler's rounding",
    );
    strictEqual(rows.length, 8 * 4);
    deepStrictEqual(notes, ["old_logp is not in the batch: behaviour_logp stands for it"]);

    await Deno.writeTextFile(`${home}/bad.py`, BAD);
    const refused = await rl([
      "run",
      "configs/quickstart_small.yaml",
      `algorithm=${home}/bad.py`,
      "--home",
      home,
    ], {});
    strictEqual(refused.code, 2, refused.output);
    ok(/bad.py because it depends on how a step is split/.test(refused.output), refused.output);
    const { output: runs } = await rl(["runs", "--json", "--home", home], {});
    deepStrictEqual(
      JSON.parse(runs).map(({ id }: { id: string }) => id),
      ["mine"],
      "nothing was recorded",
    );
  } finally {
    await Deno.remove(home, { recursive: true });
  }
});

/** A mean over what happens to stand in one micro-batch. */
const BAD = `
def credit(round, c):
    return {"advantage": round.reward - round.reward.mean()}

def loss(x, c):
    return {"loss": ("token_mean", -x.logp * (x.advantage - x.advantage.mean()))}
`;

/** What is asked of an algorithm that has joined; each narrowed to it where that can be. */
const CHECKS: Record<string, string[]> = {
  "its types are right": ["check", "--quiet", "algs/mod.ts"],
  "the lint lets it be": ["lint", "--quiet", "algs"],
  "it has every property": testArgs("tests/algs/properties/properties_test.ts", "/my_algorithm/"),
  "its configuration is one like the others": testArgs(
    "tests/configs/shipped_files_test.ts",
    "/every online algorithm has a configuration/",
  ),
  "its page is one like the others": testArgs(
    "tests/docs/algorithm_pages_test.ts",
    "/^my_algorithm|the list/",
  ),
  "what is asked of the whole table is asked of it": [
    "test",
    "-A",
    "--quiet",
    "--no-check",
    ...[
      "table",
      "terms/terms",
      "properties/identities",
      "terms/kl",
      "peers/peers",
      "profiles/profiles",
      "recorded_losses",
      "terms/truncation",
    ].map((name) => `tests/algs/${name}_test.ts`),
    "tests/bench/learning_test.ts",
  ],
};

function testArgs(file: string, filter: string): string[] {
  return ["test", "-A", "--quiet", "--no-check", "--filter", filter, file];
}

const TRAINING = `import { online } from "../../flows/online.ts";
import { execute, onlineConfig, stores } from "./fixtures.ts";
const { model, ...home } = await stores();
const config = onlineConfig(model, { algorithm: { name: "my_algorithm" } });
const { outcome, trainer } = await execute(online, config, home);
const trained = trainer.calls.filter(({ op }) => op === "train").length;
console.log(JSON.stringify({ status: outcome.status, trained }));
`;

/** The two files that a new algorithm touches, and what `deno task schema` then writes. */
const TOUCHED = ["algs/my_algorithm.ts", "algs/table.ts"];
const GENERATED = [
  "configs/algorithms/my_algorithm.yaml",
  "configs/holdfast.schema.json",
  "docs/algorithms/README.md",
  "docs/algorithms/my_algorithm.md",
  "docs/settings.md",
];

async function addTo(dir: string): Promise<void> {
  const text = await Deno.readTextFile(`${EXAMPLE}.ts`);
  const source = text.replace(/^import \{[^}]*\} from "holdfast";$/m, NEIGHBOURS);
  await Deno.writeTextFile(`${dir}algs/my_algorithm.ts`, source);
  const table = await Deno.readTextFile(`${dir}algs/table.ts`);
  const line = table.replace("export const ONLINE_ALGORITHMS = {\n", "$&  my_algorithm,\n");
  await Deno.writeTextFile(
    `${dir}algs/table.ts`,
    `import { my_algorithm } from "./my_algorithm.ts";\n${line}`,
  );
}
