import {
  type AlgorithmChoice,
  expressionsOf,
  inPython,
  masksTruncated,
  needsOf,
  refillOf,
} from "../../algs/mod.ts";
import { ValueModelConfig } from "../../workers/mod.ts";
import { ReferenceConfig } from "../blocks.ts";
import type { Issue } from "../problems/issue_text.ts";
import type { Blocks } from "./rule_blocks.ts";

/** Rules between the algorithm and the blocks around it. They ask what it reads, never its name. */
export const ALGORITHM_RULES = [
  referenceIsRead,
  valueModelIsRead,
  penaltyBegins,
  batchesAreReusable,
  completionsAreSampled,
  surplusIsDrawn,
];

/** An algorithm in Python is a file that only a trainer opens: what it reads is unknown. */
function known(algorithm: AlgorithmChoice | undefined): algorithm is AlgorithmChoice {
  return algorithm !== undefined && !inPython(algorithm);
}

function referenceIsRead({ algorithm, reference }: Blocks): Issue[] {
  if (!reference || !known(algorithm) || needsOf(algorithm, 1).includes("ref_logp")) return [];
  const fix = "kl_coef" in algorithm
    ? "set algorithm.kl_coef above 0, or leave it out"
    : "leave it out";
  return unread(reference, { block: "reference", defaults: ReferenceConfig.parse({}) }).map((
    path,
  ) => ({
    path,
    message: `${algorithm.name} reads no reference model with these settings: ${fix}`,
  }));
}

function valueModelIsRead({ algorithm, value_model }: Blocks): Issue[] {
  if (!value_model || !known(algorithm) || expressionsOf(algorithm).value_loss !== undefined) {
    return [];
  }
  return unread(value_model, { block: "value_model", defaults: ValueModelConfig.parse({}) }).map((
    path,
  ) => ({
    path,
    message: `${algorithm.name} has no value model: leave it out`,
  }));
}

/** The settings of a block that are not its defaults. */
function unread(
  block: Record<string, unknown>,
  { block: name, defaults }: { block: string; defaults: Record<string, unknown> },
): string[][] {
  const same = (key: string) => JSON.stringify(block[key]) === JSON.stringify(defaults[key]);
  return Object.keys(block).filter((key) => !same(key)).map((key) => [name, key]);
}

function penaltyBegins({ algorithm, sampler }: Blocks): Issue[] {
  if (
    !sampler || !algorithm || !("overlong_buffer" in algorithm) || algorithm.overlong_buffer === 0
  ) return [];
  const begins = (algorithm.overlong_length_max ?? 0) - algorithm.overlong_buffer;
  if (begins < sampler.tokens_max) return [];
  const message =
    `is ${algorithm.overlong_length_max}; the penalty starts at ${begins} tokens, but a ` +
    `completion has at most ${sampler.tokens_max} (sampler.tokens_max): the penalty would ` +
    "never apply";
  return [{ path: ["algorithm", "overlong_length_max"], message }];
}

/** A file serves every flow, so it has these settings even in those that sample nothing. */
function completionsAreSampled({ flow, algorithm }: Blocks): Issue[] {
  if (!algorithm || (flow !== "supervised" && flow !== "preference")) return [];
  const why = "nothing is sampled in this flow, so";
  const issue = (name: string, condition: string): Issue => ({
    path: ["algorithm", name],
    message: `is ${condition}: leave it out`,
  });
  const masks = masksTruncated(algorithm);
  const refill = refillOf(algorithm);
  return [
    ...(masks ? [issue("mask_truncated", `true; ${why} no completion is cut`)] : []),
    ...(refill
      ? [issue("refill_batches_max", `${refill.batches_max}; ${why} no group is replaced`)]
      : []),
  ];
}

/** Only rounds that draw until they are full have more than they need. */
function surplusIsDrawn({ algorithm }: Blocks): Issue[] {
  if (!algorithm || !("surplus" in algorithm) || algorithm.surplus === "discard") return [];
  if (refillOf(algorithm) !== null) return [];
  const message =
    `is ${algorithm.surplus}, but refill_batches_max is 0, so a round draws no more ` +
    "than it needs: set refill_batches_max above 0, or leave it out";
  return [{ path: ["algorithm", "surplus"], message }];
}

/** Reused samples need a ratio to what the policy would sample now. */
function batchesAreReusable({ algorithm, trainer }: Blocks): Issue[] {
  const epochs = trainer?.epochs_per_batch ?? 1;
  if (epochs === 1 || !known(algorithm)) return [];
  const { inputs } = expressionsOf(bare(algorithm)).loss;
  if (
    !inputs.includes("advantage") || inputs.includes("old_logp") ||
    inputs.includes("behaviour_logp")
  ) return [];
  const message =
    `is ${epochs}; ${algorithm.name} has no ratio to correct for what the policy has already ` +
    "learned: use 1";
  return [{ path: ["trainer", "epochs_per_batch"], message }];
}

/**
 * Excludes a KL and an importance weight, which also read recorded log-probabilities but correct no
 * reuse.
 */
function bare(algorithm: AlgorithmChoice): AlgorithmChoice {
  const off = { importance: "none", kl_coef: 0, kl_target: null };
  const applicable = Object.entries(off).filter(([name]) => name in algorithm);
  return { ...algorithm, ...Object.fromEntries(applicable) } as AlgorithmChoice;
}
