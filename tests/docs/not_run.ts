import { PREFERENCE_ALGORITHMS, SUPERVISED_ALGORITHMS } from "../../algs/mod.ts";

/**
 * Commands of the docs that the docs test does not run as they stand: they take minutes, or need a
 * model. Each says what is run instead and where the command itself is run. Whatever is listed here
 * must still be in the docs.
 */
type NotRun = { command: string; why: string; instead: string | null; covered_by: string };

const FIXTURES = "tests/configs/bad";
const MODEL = `model.path=${FIXTURES}/model data.train.0.path=${FIXTURES}/rows.jsonl`;

/** Each algorithm's own configuration is the quickstart's work: minutes. */
const ALGORITHM_RUNS = [...Deno.readDirSync(new URL("../../configs/algorithms", import.meta.url))]
  .map(({ name }) => ({
    command: `deno task rl run configs/algorithms/${name}`,
    why: "takes minutes",
    instead: `deno task rl plan configs/algorithms/${name}${
      name.replace(/\.yaml$/, "") in SUPERVISED_ALGORITHMS ? ` ${MODEL}` : ""
    }`,
    covered_by: name.replace(/\.yaml$/, "") in PREFERENCE_ALGORITHMS
      ? "tests/e2e/preference_test.ts"
      : "bench/learning.ts",
  }));

export const NOT_RUN: NotRun[] = [
  ...ALGORITHM_RUNS,
  {
    command: "npx -y deno@2 task rl",
    why: "the quickstart takes a minute or more",
    instead: "deno task rl plan configs/quickstart.yaml",
    covered_by: "tests/e2e/quickstart_test.ts",
  },
  ...[
    "deno task test --whole",
    "deno task test --whole crash simulation",
    "deno task test --whole crash/kills",
  ].map((command) => ({
    command,
    why: "takes hours, and would run this test",
    instead: null,
    covered_by: "docs/long_tests.md",
  })),
  ...["npx -y deno@2 task test", "deno task test"].map((command) => ({
    command,
    why: "it is the command that runs this test",
    instead: null,
    covered_by: ".ci/run",
  })),
  {
    command: "deno task install",
    why: "installs for the user",
    instead: null,
    covered_by: "tests/cli/install_test.ts",
  },
  {
    command: "deno task rl fetch configs/gsm8k_grpo.yaml",
    why: "downloads 264 MiB",
    instead: null,
    covered_by: "tests/cli/verbs/fetch_test.ts",
  },
  {
    command: "deno task rl run configs/gsm8k_grpo.yaml",
    why: "needs what was downloaded, and minutes",
    instead:
      `deno task rl plan configs/gsm8k_grpo.yaml ${MODEL} data.eval.0.path=${FIXTURES}/rows.jsonl`,
    covered_by: "tests/e2e/gsm8k_test.ts",
  },
  {
    command: "deno task rl run configs/sft.yaml model.path=MODEL data.train.0.path=TRAIN.jsonl",
    why: "needs a model directory",
    instead: `deno task rl plan configs/sft.yaml ${MODEL}`,
    covered_by: "docs/getting_started.md",
  },
  {
    command:
      "deno task rl run configs/gsm8k_grpo.yaml model.path=MODEL data.train.0.path=TRAIN.jsonl " +
      "data.eval.0.path=TEST.jsonl",
    why: "needs a model directory and minutes",
    instead:
      `deno task rl plan configs/gsm8k_grpo.yaml ${MODEL} data.eval.0.path=${FIXTURES}/rows.jsonl`,
    covered_by: "tests/e2e/gsm8k_test.ts",
  },
  ...[
    "pip install -r examples/reasoning_gym/requirements.txt",
    "python examples/reasoning_gym/make_rows.py datasets/reasoning_gym",
    "deno task rl run examples/reasoning_gym/sft.yaml --id families",
    "deno task rl run examples/reasoning_gym/grpo.yaml --id families_grpo " +
    "model.path=.holdfast/runs/families/final",
    "deno task bench tasks --tasks reasoning_gym --write",
  ].map((command) => ({
    command,
    why: "needs another package, and takes minutes",
    instead: null,
    covered_by: "tests/examples/reasoning_gym_test.ts",
  })),
  ...[
    "deno task rl fetch configs/gsm8k_grpo.yaml",
    "python examples/gsm8k/make_rows.py datasets/gsm8k datasets/gsm8k_short",
    "deno task rl run examples/gsm8k/sft.yaml --id solutions",
    "deno task rl run examples/gsm8k/grpo.yaml --id solutions_grpo " +
    "model.path=.holdfast/runs/solutions/final",
    "deno task bench tasks --tasks gsm8k --write",
  ].map((command) => ({
    command,
    why: "needs a model and data of the hub, and takes an hour",
    instead: null,
    covered_by: "tests/examples/gsm8k_test.ts",
  })),
];
