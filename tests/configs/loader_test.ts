import { deepStrictEqual, match, rejects } from "node:assert/strict";
import { type Config, type EvaluateConfig, loadConfig, readConfig } from "../../configs/mod.ts";
import { DIR, lines, load, ONLINE, online } from "./parsed.ts";

Deno.test("parseConfig() takes a Python reward by name with settings, and a list of one without its list", async () => {
  const text = ONLINE.replace(
    "reward: exact_match",
    "reward: { name: my_reward.py:score_answer, weight: 2, label: mine }",
  );
  deepStrictEqual((await online([], text)).reward, [
    {
      name: "python",
      weight: 2,
      label: "mine",
      source: `${DIR}/my_reward.py:score_answer`,
      timeout_ms: 10_000,
    },
  ]);
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

Deno.test("readConfig() reads back a resolved configuration unchanged", async () => {
  const config: Config = await online(["reward.1=my_reward.py:score_answer"]);
  deepStrictEqual(readConfig(JSON.parse(JSON.stringify(config))), config);
});

Deno.test("the evaluate flow needs no training data", async () => {
  const text =
    "flow: evaluate\nmodel: { path: model }\ndata: { eval: rows.jsonl }\nreward: exact_match\n";
  const config = (await load([], text)).config as EvaluateConfig;
  deepStrictEqual(config.evaluate, {
    problems: null,
    samples_per_prompt: 1,
    files: "apart",
    sets: [],
    greedy: true,
    majority: true,
    right_at: null,
    failed_fraction_max: 0.1,
  });
});

Deno.test("loadConfig() says that a file is not there", async () => {
  await rejects(loadConfig("/nowhere.yaml"), (error) => {
    match(
      (error as Error).message,
      /^\/nowhere\.yaml: cannot read the configuration: there is no such file$/,
    );
    return true;
  });
});

Deno.test("a text of a configuration that no tokenizer can read is refused with its place", async () => {
  const half = /the text has half of a surrogate pair, as of a cut emoji; correct or remove it/;
  const places: [string, string[], string][] = [
    [`${ONLINE}sampler: { stop: ["ok", "x\\ud83d"] }\n`, [], "DIR/x.yaml:11:25 sampler.stop.1: "],
    [
      `${ONLINE}model: { "x\\udc00": 1 }\n`.replace("model: { path: model }\n", ""),
      [],
      "DIR/x.yaml:10:10 model.x\ufffd: ",
    ],
    [ONLINE, ['model.path="x\\ud83d"'], "override model.path: "],
  ];
  for (const [text, overrides, place] of places) {
    const [line] = await lines(overrides, text);
    match(line!, new RegExp(`^${RegExp.escape(place)}`));
    match(line!, half);
  }
});

Deno.test("loadConfig() refuses bytes that are not UTF-8 where they are read, and no others", async () => {
  const file = `${await Deno.makeTempDir()}/latin1.yaml`;
  const write = (text: string) =>
    Deno.writeFile(file, Uint8Array.from(text, (one) => one.charCodeAt(0)));
  try {
    await write(`${ONLINE}sampler: { stop: ["caf\xe9"] }\n`);
    await rejects(
      loadConfig(file, { files_missing: true }),
      /latin1\.yaml:11:19 sampler\.stop\.0: the text has bytes that are not UTF-8; save the file as UTF-8/,
    );
    await write(`# caf\xe9\n${ONLINE}`);
    deepStrictEqual((await loadConfig(file, { files_missing: true })).config.flow, "online");
  } finally {
    await Deno.remove(file);
  }
});
