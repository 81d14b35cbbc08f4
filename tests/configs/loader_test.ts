import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import {
  changedAlgorithm,
  type Config,
  type EvaluateConfig,
  loadConfig,
  type OnlineConfig,
  parseConfig,
  readConfig,
} from "../../configs/mod.ts";
import { sha256Hex } from "../../engine/mod.ts";

const DIR = decodeURIComponent(new URL("./bad", import.meta.url).pathname);
const ONLINE = `flow: online
rounds: 2
prompts_per_round: 4
samples_per_prompt: 2
model: { path: model }
data: { train: rows.jsonl }
algorithm: grpo
reward: exact_match
trainer:
  optimizer: { lr: 1e-5 }
`;

const load = async (overrides: string[] = [], text = ONLINE) =>
  await parseConfig(text, { file: `${DIR}/x.yaml`, cwd: DIR, overrides });
const online = async (overrides: string[] = [], text = ONLINE) => (await load(overrides, text)).config as OnlineConfig;
const lines = async (overrides: string[], text = ONLINE) => {
  let told: string[] = [];
  await rejects(load(overrides, text), (error) => {
    told = (error as Error).message.replaceAll(DIR, "DIR").split("\n");
    return true;
  });
  return told;
};

Deno.test("parseConfig() writes short forms out, fills defaults in and makes paths absolute", async () => {
  const config = await online([], ONLINE.replace("reward: exact_match", "reward: [gsm8k, my_reward.py:score_answer]"));
  deepStrictEqual(config.reward, [
    { name: "gsm8k", weight: 1, fallback: "none" },
    { name: "python", weight: 1, source: `${DIR}/my_reward.py:score_answer`, timeout_ms: 10_000 },
  ]);
  strictEqual(config.algorithm.name, "grpo");
  strictEqual(config.model.path, `${DIR}/model`);
  strictEqual(config.data.train[0]!.path, `${DIR}/rows.jsonl`);
  deepStrictEqual(config.data.eval, []);
  strictEqual(config.lag, 0);
  strictEqual(config.trainer.optimizer.lr, 1e-5);
});

Deno.test("parseConfig() takes a Python reward by name with settings, and a list of one without its list", async () => {
  const text = ONLINE.replace(
    "reward: exact_match",
    "reward: { name: my_reward.py:score_answer, weight: 2, label: mine }",
  );
  deepStrictEqual((await online([], text)).reward, [
    { name: "python", weight: 2, label: "mine", source: `${DIR}/my_reward.py:score_answer`, timeout_ms: 10_000 },
  ]);
});

Deno.test("parseConfig() takes an algorithm in a Python file by its path, with settings beside it or in settings", async () => {
  const source = `${DIR}/my_algorithm.py`;
  const sha256 = sha256Hex(await Deno.readFile(source));
  const long = (settings: Record<string, number>) => ({
    name: "python",
    source,
    settings,
    value_model: false,
    mask_truncated: false,
    sha256,
  });
  const algorithm = async (text: string, overrides: string[] = []) => {
    const written = await online(overrides, ONLINE.replace("algorithm: grpo", `algorithm: ${text}`));
    return written.algorithm as unknown;
  };
  deepStrictEqual(await algorithm("my_algorithm.py"), long({}));
  deepStrictEqual(await algorithm("{ name: my_algorithm.py, clip: 0.1 }"), long({ clip: 0.1 }));
  const whole = "{ name: python, source: my_algorithm.py, settings: { clip: 0.1 } }";
  deepStrictEqual(await algorithm(whole, ["algorithm.clip=0.2", "algorithm.kl=1"]), long({ clip: 0.2, kl: 1 }));
});

Deno.test("changedAlgorithm() names the file of a recorded configuration that is another one by now", async () => {
  const recorded = await online([], ONLINE.replace("algorithm: grpo", "algorithm: my_algorithm.py"));
  strictEqual(await changedAlgorithm(recorded), null);
  strictEqual(await changedAlgorithm(await online()), null);
  const edited = { ...recorded, algorithm: { ...recorded.algorithm, sha256: "0".repeat(64) } };
  strictEqual(await changedAlgorithm(edited), `${DIR}/my_algorithm.py`);
});

Deno.test("overrides set YAML values, list entries by index, blocks that are not there, and short forms", async () => {
  const config = await online([
    "seed=7",
    "trainer.optimizer.betas=[0.8, 0.9]",
    "trainer.optimizer.betas.1=0.95",
    "sampler.stop=['\\n']",
    "reward.0.weight=0.5",
    "reward.1=length",
    "algorithm.clip_high=0.3",
    "rollouts.slab_groups=null",
    "trainer.optimizer.lr=2e-5",
    "data.eval.0.path=rows.jsonl",
    "data.eval.0.limit=3",
  ]);
  deepStrictEqual(config.data.eval.map(({ path, limit }) => [path, limit]), [[`${DIR}/rows.jsonl`, 3]]);
  strictEqual(config.seed, 7);
  deepStrictEqual(config.trainer.optimizer.betas, [0.8, 0.95]);
  deepStrictEqual(config.sampler.stop, ["\\n"]);
  deepStrictEqual(config.reward.map(({ name, weight }) => [name, weight]), [["exact_match", 0.5], ["length", 1]]);
  strictEqual((config.algorithm as { clip_high?: number }).clip_high, 0.3);
  strictEqual(config.rollouts.slab_groups, null);
  strictEqual(config.trainer.optimizer.lr, 2e-5);
});

Deno.test("an override's relative path starts from the working directory, the file's from the file", async () => {
  const text = ONLINE.replace("path: model", "path: nowhere");
  const { config } = await parseConfig(text.replace("train: rows.jsonl", "train: bad/rows.jsonl"), {
    file: `${DIR}/../x.yaml`,
    cwd: DIR,
    overrides: ["model.path=model"],
  });
  strictEqual((config as OnlineConfig).model.path, `${DIR}/model`);
  strictEqual((config as OnlineConfig).data.train[0]!.path, `${DIR}/rows.jsonl`);
});

Deno.test("problems of overrides are told as `override a.b`, after the file's, all at once", async () => {
  deepStrictEqual(
    await lines([
      "trianer.ranks=2",
      "trainer.rank=2",
      "rounds=many",
      "reward.7=gsm8k",
      "prompts_per_round.x=1",
      "lag=[1",
      "nonsense",
      "a..b=1",
      "model.path=elsewhere",
    ], ONLINE.replace("rounds: 2\n", "rounds: 2\ncolour: red\n")),
    [
      "DIR/x.yaml:3:1 colour: unknown key",
      "override reward.7: there is no entry '7' in a list of 1; the next is 1",
      "override prompts_per_round.x: cannot set 'x' inside 4, which is not a block",
      "override lag: the value is not YAML: Flow sequence must end with a ]",
      "override nonsense: an override is written PATH=VALUE, e.g. seed=2",
      "override a..b: a path is names with single dots between them, e.g. trainer.ranks",
      'override rounds: expected a number, got "many"',
      "override trainer.rank: unknown key (did you mean ranks?)",
      "override trianer.ranks trianer: unknown key (did you mean trainer?)",
      "override model.path: there is no directory at DIR/elsewhere",
    ],
  );
});

Deno.test("an override can mend what is wrong in the file", async () => {
  strictEqual((await online(["rounds=3"], ONLINE.replace("rounds: 2", "rounds: none"))).rounds, 3);
});

Deno.test("origins name the place of every leaf: file, override or default", async () => {
  const { origins } = await load(["seed=3"]);
  const of = (path: string) => {
    const { value, origin, where } = origins.find((leaf) => leaf.path === path)!;
    return [value, origin, where.replace(DIR, "DIR")];
  };
  deepStrictEqual(of("rounds"), [2, "file", "DIR/x.yaml:2:9"]);
  deepStrictEqual(of("seed"), [3, "override", "override seed"]);
  deepStrictEqual(of("lag"), [0, "default", ""]);
  deepStrictEqual(of("algorithm.name"), ["grpo", "file", "DIR/x.yaml:7:12"]);
  deepStrictEqual(of("data.train.0.path"), [`${DIR}/rows.jsonl`, "file", "DIR/x.yaml:6:16"]);
  deepStrictEqual(of("reward.0.weight"), [1, "default", ""]);
  deepStrictEqual(of("trainer.optimizer.lr"), [1e-5, "file", "DIR/x.yaml:10:20"]);
  deepStrictEqual(of("data.eval"), [[], "default", ""]);
});

Deno.test("a value used through an alias is told at its anchor", async () => {
  const text = `flow: quickstart
warmup: { rounds: 1, rows_per_round: 4, optimizer: &o { lr: fast } }
online: { rounds: 1, prompts_per_round: 4, samples_per_prompt: 2, optimizer: *o }
`;
  deepStrictEqual(await lines([], text), [
    'DIR/x.yaml:2:61 warmup.optimizer.lr: expected a number, got "fast"',
    'DIR/x.yaml:2:61 online.optimizer.lr: expected a number, got "fast"',
  ]);
});

Deno.test("readConfig() reads back a resolved configuration unchanged", async () => {
  const config: Config = await online(["reward.1=my_reward.py:score_answer"]);
  deepStrictEqual(readConfig(JSON.parse(JSON.stringify(config))), config);
});

Deno.test("the evaluate flow needs no training data", async () => {
  const text = "flow: evaluate\nmodel: { path: model }\ndata: { eval: rows.jsonl }\nreward: exact_match\n";
  const config = (await load([], text)).config as EvaluateConfig;
  deepStrictEqual(config.evaluate, {
    ...{ problems: null, samples_per_prompt: 1, files: "apart", greedy: true },
    ...{ right_at: null, failed_fraction_max: 0.1 },
  });
});

Deno.test("loadConfig() says that a file is not there", async () => {
  await rejects(loadConfig("/nowhere.yaml"), (error) => {
    match((error as Error).message, /^\/nowhere\.yaml: cannot read the configuration: there is no such file$/);
    return true;
  });
});
