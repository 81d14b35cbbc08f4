import { deepStrictEqual } from "node:assert/strict";
import { AlgorithmChoice } from "../../../algs/mod.ts";
import { ALGORITHM_RULES } from "../../../configs/rules/algorithm_rules.ts";
import { ReferenceConfig } from "../../../configs/mod.ts";
import type { Blocks } from "../../../configs/rules/rule_blocks.ts";
import { SamplerConfig, TrainerConfig, ValueModelConfig } from "../../../workers/mod.ts";

const algorithm = (name: string, settings: Record<string, unknown> = {}) =>
  AlgorithmChoice.parse({ name, ...settings });
const inPython = (settings = {}) => algorithm("python", { source: "mine.py", ...settings });
const issues = (blocks: Partial<Blocks>) =>
  ALGORITHM_RULES.flatMap((rule) => rule({ flow: "online", ...blocks }));
const paths = (blocks: Partial<Blocks>) => issues(blocks).map(({ path }) => path.join("."));

Deno.test("each changed setting of a reference that the loss does not read is refused", () => {
  const reference = ReferenceConfig.parse({ refresh_rounds: 5, offload: true });
  const unread = "reads no reference model with these settings";
  const fix = "set algorithm.kl_coef above 0, or leave it out";
  deepStrictEqual(issues({ algorithm: algorithm("grpo"), reference }), [
    { path: ["reference", "refresh_rounds"], message: `grpo ${unread}: ${fix}` },
    { path: ["reference", "offload"], message: `grpo ${unread}: ${fix}` },
  ]);
  deepStrictEqual(issues({ algorithm: algorithm("sft"), reference })[0], {
    path: ["reference", "refresh_rounds"],
    message: `sft ${unread}: leave it out`,
  });
});

Deno.test("a reference is accepted if it is read, unchanged, or if Python may read it", () => {
  const reference = ReferenceConfig.parse({ refresh_rounds: 5 });
  deepStrictEqual(issues({ algorithm: algorithm("grpo", { kl_coef: 0.1 }), reference }), []);
  deepStrictEqual(
    issues({ algorithm: algorithm("grpo"), reference: ReferenceConfig.parse({}) }),
    [],
  );
  deepStrictEqual(issues({ algorithm: inPython(), reference }), []);
  deepStrictEqual(issues({ reference }), []);
});

Deno.test("the settings of a value model are for algorithms that have one", () => {
  const value_model = ValueModelConfig.parse({ warmup_rounds: 5 });
  deepStrictEqual(issues({ algorithm: algorithm("grpo"), value_model }), [{
    path: ["value_model", "warmup_rounds"],
    message: "grpo has no value model: leave it out",
  }]);
  deepStrictEqual(issues({ algorithm: algorithm("ppo"), value_model }), []);
  deepStrictEqual(
    issues({ algorithm: algorithm("grpo"), value_model: ValueModelConfig.parse({}) }),
    [],
  );
});

Deno.test("the penalty for long completions begins below the longest completion", () => {
  const algorithmOf = (overlong_buffer: number) =>
    algorithm("dapo", { overlong_buffer, overlong_length_max: 612 });
  const sampler = SamplerConfig.parse({ tokens_max: 512 });
  deepStrictEqual(issues({ algorithm: algorithmOf(101), sampler }), []);
  deepStrictEqual(issues({ algorithm: algorithmOf(100), sampler }), [{
    path: ["algorithm", "overlong_length_max"],
    message: "is 612; the penalty starts at 512 tokens, but a completion has at most 512 " +
      "(sampler.tokens_max): the penalty would never apply",
  }]);
  const off = algorithm("dapo", { overlong_buffer: 0, overlong_length_max: null });
  deepStrictEqual(issues({ algorithm: off, sampler }), []);
});

Deno.test("a batch is reused only by a loss with a ratio", () => {
  const twice = TrainerConfig.parse({ epochs_per_batch: 2 });
  const refused = ["trainer.epochs_per_batch"];
  deepStrictEqual(paths({ algorithm: algorithm("reinforce"), trainer: twice }), refused);
  const weighted = algorithm("reinforce", { importance: "token_truncate" });
  deepStrictEqual(paths({ algorithm: weighted, trainer: twice }), refused);
  for (const accepted of [algorithm("grpo"), algorithm("sft"), inPython()]) {
    deepStrictEqual(paths({ algorithm: accepted, trainer: twice }), [], accepted.name);
  }
  const once = TrainerConfig.parse({ epochs_per_batch: 1 });
  deepStrictEqual(paths({ algorithm: algorithm("reinforce"), trainer: once }), []);
});

Deno.test("completions are masked only in flows that sample", () => {
  const masked = inPython({ mask_truncated: true });
  const flows = ["online", "quickstart", "supervised", "preference"] as const;
  deepStrictEqual(flows.map((flow) => paths({ flow, algorithm: masked })), [
    [],
    [],
    ["algorithm.mask_truncated"],
    ["algorithm.mask_truncated"],
  ]);
  deepStrictEqual(paths({ flow: "supervised", algorithm: inPython() }), []);
});
