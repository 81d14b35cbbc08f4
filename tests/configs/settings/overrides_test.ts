import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { type OnlineConfig, parseConfig } from "../../../configs/mod.ts";
import { DIR, lines, ONLINE, online } from "../parsed.ts";

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
  deepStrictEqual(config.data.eval.map(({ path, limit }) => [path, limit]), [[
    `${DIR}/rows.jsonl`,
    3,
  ]]);
  strictEqual(config.seed, 7);
  deepStrictEqual(config.trainer.optimizer.betas, [0.8, 0.95]);
  deepStrictEqual(config.sampler.stop, ["\\n"]);
  deepStrictEqual(config.reward.map(({ name, weight }) => [name, weight]), [["exact_match", 0.5], [
    "length",
    1,
  ]]);
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
      "override model.path: there is no directory at DIR/elsewhere, and it is not a model of the " +
      "hub: OWNER/NAME or OWNER/NAME@REVISION",
    ],
  );
});

Deno.test("an override can mend what is wrong in the file", async () => {
  strictEqual((await online(["rounds=3"], ONLINE.replace("rounds: 2", "rounds: none"))).rounds, 3);
});
