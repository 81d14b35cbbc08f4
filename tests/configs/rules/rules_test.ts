import { deepStrictEqual, ok, rejects, strictEqual } from "node:assert/strict";
import { Ajv } from "ajv";
import { parse } from "yaml";
import { ONLINE_ALGORITHMS } from "../../../algs/mod.ts";
import { ConfigError, configJsonSchema, loadConfig } from "../../../configs/mod.ts";

const DIR = decodeURIComponent(new URL("../bad", import.meta.url).pathname);
const GOLDEN = [...Deno.readDirSync(DIR)].map(({ name }) => name).filter((name) =>
  name.endsWith(".yaml")
).sort();

/** As they are listed where none is meant by a name: an algorithm more changes no golden file. */
const ALGORITHMS = [...Object.keys(ONLINE_ALGORITHMS), "python"].join(", ");

const NOT_YAML = "yaml_syntax.yaml";
// What a JSON Schema cannot see: rules between fields, files, and a key that stands twice.
const BEYOND_THE_SCHEMA = new Set([
  "algorithm_rules.yaml",
  "attention.yaml",
  "cispo_bounds.yaml",
  "duplicate_key.yaml",
  "evaluation_sets.yaml",
  "few_pairs.yaml",
  "filter_unread.yaml",
  "hub_data.yaml",
  "keep_every.yaml",
  "keep_weights_every.yaml",
  "metrics.yaml",
  "kl_estimator.yaml",
  "kl_scaled.yaml",
  "labels.yaml",
  "lag.yaml",
  "memory.yaml",
  "mixture.yaml",
  "no_algorithm.yaml",
  "no_model.yaml",
  "no_ratio.yaml",
  "no_rows.yaml",
  "not_a_model.yaml",
  "nothing_is_cut.yaml",
  "nothing_to_evaluate.yaml",
  "preference.yaml",
  "python_algorithm.yaml",
  "python_reward.yaml",
  "python_reward_model.yaml",
  "quickstart_digits.yaml",
  "reuse.yaml",
  "reward_twice.yaml",
  "reward_sources.yaml",
  "reward_when.yaml",
  "schedule_without_end.yaml",
  "small_group.yaml",
  "start_from.yaml",
  "surplus_unread.yaml",
  "template_ignored.yaml",
  "torch_ranks.yaml",
  "truncated_sampling.yaml",
  "uneven_updates.yaml",
  "value_model.yaml",
]);

const validate = new Ajv({ allErrors: true }).compile(configJsonSchema());

Deno.test("there are at least 20 golden bad configurations", () => ok(GOLDEN.length >= 20));

for (const name of GOLDEN) {
  const file = `${DIR}/${name}`;
  const text = Deno.readTextFileSync(file);

  Deno.test(`loadConfig() tells exactly what is wrong with bad/${name}`, async () => {
    const expected = [...text.matchAll(/^# expect (.*)$/gm)].map(([, line]) =>
      `${file}:${line!.replaceAll("DIR", DIR).replace("ALGORITHMS", ALGORITHMS)}`
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
