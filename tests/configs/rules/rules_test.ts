import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { Ajv } from "ajv";
import { parse } from "yaml";
import { ONLINE_ALGORITHMS } from "../../../algs/mod.ts";
import { ConfigError, configJsonSchema, loadConfig } from "../../../configs/mod.ts";
import { REWARDS } from "../../../rewards/mod.ts";

const DIR = decodeURIComponent(new URL("../bad", import.meta.url).pathname);
/** In folders by the block that is wrong; what is wrong with the file or the run is beside them. */
const GOLDEN = yamlFiles(DIR).sort();

/** As they are listed where none is meant by a name: one more of them changes no golden file. */
const LISTS = {
  ALGORITHMS: [...Object.keys(ONLINE_ALGORITHMS), "python"].join(", "),
  REWARDS: Object.keys(REWARDS).join(", "),
};

const NOT_YAML = "yaml_syntax.yaml";
// What a JSON Schema cannot see: rules between fields, files, and a key that stands twice.
const BEYOND_THE_SCHEMA = new Set([
  "algorithm/algorithm_rules.yaml",
  "algorithm/cispo_bounds.yaml",
  "algorithm/kl_estimator.yaml",
  "algorithm/kl_scaled.yaml",
  "algorithm/no_algorithm.yaml",
  "algorithm/nothing_is_cut.yaml",
  "algorithm/python_algorithm.yaml",
  "algorithm/small_group.yaml",
  "algorithm/surplus_unread.yaml",
  "attention.yaml",
  "data/hub_data.yaml",
  "data/mixture.yaml",
  "data/no_rows.yaml",
  "duplicate_key.yaml",
  "evaluate/evaluation_sets.yaml",
  "evaluate/few_pairs.yaml",
  "evaluate/metrics.yaml",
  "evaluate/nothing_to_evaluate.yaml",
  "evaluate/quickstart_digits.yaml",
  "keep_every.yaml",
  "keep_weights_every.yaml",
  "lag.yaml",
  "no_model.yaml",
  "not_a_model.yaml",
  "preference/labels.yaml",
  "preference/preference.yaml",
  "preference/start_from.yaml",
  "reward/filter_unread.yaml",
  "reward/python_reward.yaml",
  "reward/reward_sources.yaml",
  "reward/reward_twice.yaml",
  "reward/reward_when.yaml",
  "template_ignored.yaml",
  "trainer/memory.yaml",
  "trainer/no_ratio.yaml",
  "trainer/python_reward_model.yaml",
  "trainer/reuse.yaml",
  "trainer/schedule_never_falls.yaml",
  "trainer/schedule_too_short.yaml",
  "trainer/schedule_without_end.yaml",
  "trainer/torch_ranks.yaml",
  "trainer/uneven_updates.yaml",
  "trainer/value_model.yaml",
  "truncated_sampling.yaml",
]);

const validate = new Ajv({ allErrors: true }).compile(configJsonSchema());

Deno.test("there are at least 20 golden bad configurations", () => ok(GOLDEN.length >= 20));

for (const name of GOLDEN) {
  const file = `${DIR}/${name}`;
  const text = Deno.readTextFileSync(file);

  Deno.test(`loadConfig() tells exactly what is wrong with bad/${name}`, async () => {
    const expected = [...text.matchAll(/^# expect (.*)$/gm)].map(([, line]) =>
      Object.entries(LISTS).reduce(
        (text, [name, list]) => text.replace(name, list),
        `${file}:${line!.replaceAll("DIR", DIR)}`,
      )
    );
    await rejects(loadConfig(file), (error) => {
      ok(error instanceof ConfigError, String(error));
      deepStrictEqual(error.message.split("\n"), expected);
      return true;
    });
  });

  if (name === NOT_YAML) continue;
  Deno.test(`the JSON Schema ${BEYOND_THE_SCHEMA.has(name) ? "cannot judge" : "refuses"} bad/${name}`, () => {
    strictEqual(validate(parse(text, { uniqueKeys: false })), BEYOND_THE_SCHEMA.has(name));
  });
}

/** Paths from `dir`. */
function yamlFiles(dir: string, within = ""): string[] {
  return [...Deno.readDirSync(`${dir}/${within}`)].flatMap(({ name, isDirectory }) =>
    isDirectory
      ? yamlFiles(dir, `${within}${name}/`)
      : name.endsWith(".yaml")
      ? [`${within}${name}`]
      : []
  );
}
