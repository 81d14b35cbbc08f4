import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { parse } from "yaml";
import { creditOf, ONLINE_ALGORITHMS, SUPERVISED_ALGORITHMS } from "../../algs/mod.ts";
import { holds, loadConfig, namedFiles, shippedFiles } from "../../configs/mod.ts";
import type { Trajectory } from "../../data/mod.ts";
import { ArtifactStore } from "../../engine/mod.ts";
import { scoringFunctions } from "../../rewards/mod.ts";
import { RewardScorer } from "../../rollouts/mod.ts";
import { ROOM, validate } from "./shipped.ts";

const FIXTURES = decodeURIComponent(new URL("./bad", import.meta.url).pathname);
const SHIPPED = [...Deno.readDirSync(ROOM)].map(({ name }) => name).filter((name) =>
  name.endsWith(".yaml")
).sort();
/** What a person adds to run it: the model and the data, which do not ship. */
const LOCAL: Record<string, string[]> = {
  "gsm8k_grpo.yaml": [
    "data.train.0.path=rows.jsonl",
    "data.eval.0.path=rows.jsonl",
    "model.path=model",
  ],
  "sft.yaml": ["data.train.0.path=rows.jsonl", "model.path=model"],
  ...Object.fromEntries(
    Object.keys(SUPERVISED_ALGORITHMS).map((name) => [
      `algorithms/${name}.yaml`,
      ["data.train.0.path=rows.jsonl", "model.path=model"],
    ]),
  ),
};

function trajectory(text: string): Trajectory {
  const tokens = new Int32Array(1 + text.length);
  const action_mask = Uint8Array.from(tokens, (_, i) => (i === 0 ? 0 : 1));
  const behaviour_logp = new Float32Array(tokens.length);
  return { sample: 0, tokens, action_mask, behaviour_logp, versions: [], stop: "stop", text };
}

const caller = {
  key: "k",
  attempt: 1,
  signal: new AbortController().signal,
  record: () => Promise.resolve(),
};

/** Wrong answers to a row whose answer is 72, of many forms and lengths. */
const WRONG = [
  "",
  "?",
  "I do not know.",
  "so #### 13",
  "#### none",
  "because ".repeat(30),
  `${"and ".repeat(400)}#### 4`,
];

Deno.test("the four configurations ship", () => {
  deepStrictEqual(SHIPPED, [
    "gsm8k_grpo.yaml",
    "quickstart.yaml",
    "quickstart_small.yaml",
    "sft.yaml",
  ]);
});

for (const name of SHIPPED) {
  const text = Deno.readTextFileSync(`${ROOM}/${name}`);
  Deno.test(`${name} loads, and the schema accepts it`, async () => {
    await loadConfig(`${ROOM}/${name}`, { overrides: LOCAL[name] ?? [], cwd: FIXTURES });
    ok(validate(parse(text)), JSON.stringify(validate.errors));
  });
  Deno.test(`${name} starts with its schema line and tells its run command`, () => {
    strictEqual(text.split("\n")[0], "# yaml-language-server: $schema=./holdfast.schema.json");
    ok(/^# Run it: {2}deno task rl/m.test(text));
  });
}

Deno.test("'fetch' knows all that shipped configurations read and do not hold", async () => {
  const known = shippedFiles();
  const read = (await Promise.all(SHIPPED.map(async (name) => {
    const { config } = await loadConfig(`${ROOM}/${name}`, { files_missing: true });
    return namedFiles(config).map(({ text }) => text);
  }))).flat();
  ok(read.length >= 5, `${read}`);
  deepStrictEqual(read.filter((path) => !known.some((files) => holds(files, path))), []);
  const files = known.flatMap(({ dir, files }) => [dir, ...files.map(({ path }) => path)]);
  deepStrictEqual(read.filter((path) => !files.includes(path)), []);
});

Deno.test("no shipped configuration prefers one wrong answer to another", async () => {
  const files = [
    ...SHIPPED,
    ...[...Deno.readDirSync(`${ROOM}/algorithms`)].map(({ name }) => `algorithms/${name}`),
  ];
  let count = 0;
  for (const name of files) {
    const { config } = await loadConfig(`${ROOM}/${name}`, {
      overrides: LOCAL[name] ?? [],
      cwd: FIXTURES,
    });
    if (!("reward" in config) || config.reward.length === 0) continue;
    const row = { row_id: "r", prompt: "p", answer: "72", columns: {} };
    const trajectories = WRONG.map((text) => trajectory(text));
    const group = { functions: scoringFunctions(config.reward), prompt: "p", row, trajectories };
    const scores = await new RewardScorer({ pool: null, artifacts: new ArtifactStore("/nowhere") })
      .score(
        group,
        caller,
      );
    deepStrictEqual(scores.map(({ reward }) => reward), WRONG.map(() => 0), name);
    count++;
    if (!("algorithm" in config)) continue;
    const tokens = trajectories.map(({ tokens }) => new Array<number>(tokens.length - 1).fill(0));
    const columns = {
      old_logp: tokens,
      ref_logp: tokens,
      values: tokens,
      bootstrap: WRONG.map(() => 0),
      parts: scoringFunctions(config.reward).map(({ name, weight }) => ({
        name,
        weight,
        paid: scores.map(({ parts }) => parts[name] ?? null),
      })),
      coef: {},
    };
    const round = {
      reward: scores.map(({ reward }) => reward!),
      group: WRONG.map(() => 0),
      stop: trajectories.map(({ stop }) => stop),
      length: tokens.map(({ length }) => length),
    };
    const { advantage } = creditOf(config.algorithm, { ...round, ...columns });
    ok(advantage.flat().every((value) => value === 0), `${name}: ${advantage}`);
  }
  ok(count >= 10, `${count}`);
});

Deno.test("no page, example or configuration pays a length to wrong answers", () => {
  const root = decodeURIComponent(new URL("../../", import.meta.url).pathname);
  const filesIn = (dir: string) =>
    [...Deno.readDirSync(`${root}${dir}`)].filter(({ isFile }) => isFile)
      .map(({ name }) => `${dir}/${name}`);
  const pages = filesIn("docs").filter((name) => name.endsWith(".md"));
  const examples = filesIn("examples");
  const configs = SHIPPED.map((name) => `configs/${name}`);
  for (const file of ["README.md", ...pages, ...examples, ...configs]) {
    const entries =
      Deno.readTextFileSync(`${root}${file}`).match(/\{[^{}]*\bname: "?length\b[^{}]*\}/g) ?? [];
    for (const entry of entries) ok(/\bwhen: /.test(entry), `${file}: ${entry}`);
  }
});

Deno.test("every online algorithm has a configuration, with the same sample budget", async () => {
  const budgets = new Set<string>();
  const names = [...Deno.readDirSync(`${ROOM}/algorithms`)].map(({ name }) =>
    name.replace(/\.yaml$/, "")
  ).sort();
  deepStrictEqual(
    names.filter((name) => name in ONLINE_ALGORITHMS),
    Object.keys(ONLINE_ALGORITHMS).sort(),
  );
  for (const name of names) {
    const file = `${ROOM}/algorithms/${name}.yaml`;
    const text = Deno.readTextFileSync(file);
    const { config } = await loadConfig(file, { files_missing: true });
    ok("algorithm" in config && config.algorithm.name === name);
    ok(validate(parse(text)), `${name}: ${JSON.stringify(validate.errors)}`);
    ok(text.startsWith("# yaml-language-server: $schema=../holdfast.schema.json\n"), name);
    ok(text.includes(`# Run it:  deno task rl run configs/algorithms/${name}.yaml\n`), name);
    if (!(name in ONLINE_ALGORITHMS)) continue;
    ok(config.flow === "quickstart");
    const { rounds, prompts_per_round, samples_per_prompt } = config.online;
    budgets.add(
      JSON.stringify([config.task, config.warmup, rounds, prompts_per_round, samples_per_prompt]),
    );
  }
  strictEqual(budgets.size, 1);
});
