import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import {
  AlgorithmChoice,
  ALGORITHMS,
  expressionsOf,
  profileOf,
  profilesOf,
} from "../../../algs/mod.ts";
import { parseConfig } from "../../../configs/mod.ts";

const HEAD = `flow: quickstart
warmup: { rounds: 1, rows_per_round: 8 }
online: { rounds: 1, prompts_per_round: 2, samples_per_prompt: 2 }
`;
const load = (algorithm: string, overrides: string[] = []) =>
  parseConfig(`${HEAD}algorithm: ${algorithm}\n`, { file: "run.yaml", overrides });
const refusal = (algorithm: string, overrides: string[] = []) =>
  load(algorithm, overrides).then(() => "not refused", (error: Error) => error.message);
const settings = async (
  algorithm: string,
  overrides: string[] = [],
): Promise<Record<string, unknown>> => {
  const { config } = await load(algorithm, overrides);
  ok(config.flow === "quickstart");
  return config.algorithm;
};

Deno.test("every profile is a choice that its algorithm accepts and that traces", () => {
  const seen = new Set<string>();
  for (const name of Object.keys(ALGORITHMS)) {
    for (const framework of profilesOf(name)) {
      seen.add(framework);
      const { settings, about, ends } = profileOf(framework, name)!;
      const choice = AlgorithmChoice.parse({ name, profile: framework, ...settings });
      ok(expressionsOf(choice).loss.nodes.length > 0);
      ok(
        about.length > 0 && ends.every((sentence) => sentence.endsWith(".")),
        `${framework} ${name}`,
      );
    }
  }
  deepStrictEqual([...seen].sort(), ["feynrl", "openrlhf", "trl", "verl"]);
});

Deno.test("a profile fills in what is not written, and what is written wins", async () => {
  const { profile, clip_low, std_epsilon, importance, dual_clip } = await settings(
    "{ name: grpo, profile: trl, clip_low: 0.1 }",
  );
  deepStrictEqual([profile, clip_low, std_epsilon, importance, dual_clip], [
    "trl",
    0.1,
    1e-4,
    "sequence_mask",
    null,
  ]);
  const verl = await settings("{ name: grpo, profile: trl }", [
    "algorithm.profile=verl",
    "algorithm.std_epsilon=0.5",
  ]);
  deepStrictEqual([verl.profile, verl.std_epsilon, verl.dual_clip, verl.importance], [
    "verl",
    0.5,
    3,
    "none",
  ]);
});

Deno.test("a configuration tells what its profile set, what was written, and limits", async () => {
  const { profile, origins } = await load("{ name: grpo, profile: feynrl, clip_low: 0.4 }");
  strictEqual(profile!.name, "feynrl");
  strictEqual(profile!.set.std_epsilon, 1e-8);
  deepStrictEqual(profile!.written, { clip_low: 0.2 });
  match(profile!.ends.join(" "), /only to the last token/);
  const from = (path: string) => origins.find((origin) => origin.path === path)!;
  deepStrictEqual([from("algorithm.std_epsilon").origin, from("algorithm.std_epsilon").where], [
    "profile",
    "profile feynrl (run.yaml:4:35)",
  ]);
  strictEqual(from("algorithm.clip_low").origin, "file");
  strictEqual(from("algorithm.dual_clip").origin, "default");
  strictEqual((await load("grpo")).profile, null);
});

Deno.test("a recorded configuration with a profile reads as it was", async () => {
  const first = await load("{ name: dapo, profile: verl }");
  const again = await parseConfig(JSON.stringify(first.config), { file: "run.yaml" });
  deepStrictEqual(again.config, first.config);
  deepStrictEqual([again.profile!.set, again.profile!.written], [{}, {}]);
});

Deno.test("a profile that the algorithm lacks is refused where it is written", async () => {
  strictEqual(
    await refusal("{ name: grpo, profile: tlr }"),
    'run.yaml:4:35 algorithm.profile: expected one of trl, verl, openrlhf, feynrl, got "tlr"',
  );
  strictEqual(
    await refusal("{ name: rloo, profile: feynrl }"),
    'run.yaml:4:35 algorithm.profile: expected trl, got "feynrl"',
  );
  match(
    await refusal("{ name: reinforce, profile: trl }"),
    /^run\.yaml:4:31 algorithm\.profile: unknown key/,
  );
});

Deno.test("a problem with a profile's value is reported at the profile's line", async () => {
  strictEqual(
    await refusal("{ name: grpo, profile: trl, importance_low: 4 }"),
    "run.yaml:4:56 algorithm.importance_low: must be less than importance_high (3), got 4",
  );
  strictEqual(
    await refusal("{ name: grpo, profile: trl, kl_in: reward }"),
    "run.yaml:4:35 algorithm.kl_estimator: k3_weighted in the reward equals k3 as a reward, " +
      "because the ratio is 1: " +
      'use k1 or k3, got "k3_weighted"',
  );
});

Deno.test("a profile after a whole configuration is refused: it would set nothing", async () => {
  const { config } = await load("grpo");
  const late = parseConfig(JSON.stringify(config), {
    file: "run.yaml",
    overrides: ["algorithm.profile=trl"],
  });
  match(
    await late.then(() => "", (error: Error) => error.message),
    /^override algorithm\.profile: sets nothing/,
  );
  const anew = "algorithm={name: grpo, profile: trl}";
  const { profile } = await parseConfig(JSON.stringify(config), {
    file: "run.yaml",
    overrides: [anew],
  });
  ok(Object.keys(profile!.set).length > 5);
});
