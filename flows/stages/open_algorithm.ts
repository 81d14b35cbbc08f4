import { basename } from "node:path";
import { z } from "zod";
import { needsOfDescribed, OpenedAlgorithm, PythonAlgorithm } from "../../algs/mod.ts";
import type { AlgorithmDescription, PythonLoss, PythonSource } from "../../data/mod.ts";
import {
  BadDataError,
  canonicalJson,
  defineStage,
  sha256Hex,
  type Stage,
} from "../../engine/mod.ts";
import { Trainer } from "../resources.ts";

/** What a loss may read wherever it is used: lengths and counts. */
const ALWAYS = ["length", "group_length", "n_tokens", "n_sequences", "n_groups"];
/** What a flow gives to a loss besides these. */
const FLOW_INPUTS = {
  rewards: ["old_logp", "behaviour_logp", "ref_logp", "advantage", "returns", "staleness"],
  completions: [],
  pairs: ["ref_logp", "margin", "n_pairs"],
  labels: ["ref_logp", "label"],
};
/** What the trained model computes: with a head it has no vocabulary, and no reference. */
const LIVE = { language: ["logp", "entropy"], score: ["score", "margin", "n_pairs"] };

const Use = z.strictObject({
  learns_from: z.enum(["rewards", "completions", "pairs"]),
  samples_per_prompt: z.int().positive().nullable().describe("null: nothing is sampled."),
});
export type Use = z.infer<typeof Use>;

const Input = z.strictObject({
  algorithm: PythonAlgorithm,
  use: Use,
  updates_per_batch: z.int().positive().describe(
    "Optimizer steps between two scorings of old_logp.",
  ),
});
/** @internal */
type Input = z.input<typeof Input>;

/**
 * Records the whole text of an algorithm's file with what a trainer finds in it: from here on the
 * run no longer needs the file. Fails if the file cannot be used. Only reads: safe to run twice.
 */
export const openAlgorithm: Stage<Input, OpenedAlgorithm> = defineStage({
  name: "open_algorithm",
  version: 2,
  input: Input,
  output: OpenedAlgorithm,
  runs_on: "trainer",
  phase: "other",
  // Rounds of the prefix used the file as the parent recorded it.
  fork: { anew: true },
  async run({ algorithm, use, updates_per_batch }, ctx) {
    const algorithmSource = await sourceOf(algorithm);
    const described = await ctx.resource(Trainer).openAlgorithm(
      await ctx.artifacts.putJson(algorithmSource),
      ctx,
    );
    const fault = misuse(described, algorithm, use);
    if (fault !== null) {
      throw new BadDataError(`Cannot use ${algorithmSource.file} because ${fault}`, {
        source: algorithm.source,
      });
    }
    const { file, source } = algorithmSource;
    const python: PythonSource = { file, source, settings: described.settings };
    const put = (value: unknown) =>
      ctx.artifacts.put(new TextEncoder().encode(canonicalJson(value)));
    const part = (name: PythonLoss["python"]["part"]) =>
      put({ version: 1, python: { ...python, part: name } });
    return {
      ...described,
      source: await put(python),
      loss: await part("loss"),
      value_loss: described.value_inputs === null ? null : await part("value_loss"),
      columns: needsOfDescribed(described, updates_per_batch),
      stale_columns: needsOfDescribed(described, Infinity),
    };
  },
});

/** @throws {BadDataError} If the file is missing, or has changed since the run was created. */
export async function sourceOf(
  { source, settings, profile, sha256 }: PythonAlgorithm,
): Promise<PythonSource> {
  const bytes = await Deno.readFile(source).catch((error) => {
    throw new BadDataError(`Cannot open the algorithm in ${source}: ${error.message}`, { source });
  });
  if (sha256 !== null && sha256Hex(bytes) !== sha256) {
    throw new BadDataError(
      `Cannot open the algorithm in ${source} because it has changed since the run was ` +
        "created: restore it, or start a new run",
      { source, sha256 },
    );
  }
  return { file: basename(source), source: new TextDecoder().decode(bytes), settings, profile };
}

/** What a flow reads of the choice of a file. */
type Chosen = Pick<PythonAlgorithm, "value_model" | "parts" | "head" | "unpaired">;

/** Why this flow cannot use a file; null if it can. */
export function misuse(
  described: AlgorithmDescription,
  chosen: Chosen,
  use: Use,
): string | null {
  return misread(described, chosen, use) ??
    (use.learns_from === "rewards"
      ? misassigned(described, chosen)
      : rewardless(described, use.learns_from)) ??
    misgrouped(described, use) ?? misvalued(described, chosen);
}

/** What the loss reads and this flow does not provide, or provides only to another choice. */
function misread(
  { inputs, pairs, mismatched }: AlgorithmDescription,
  { head, unpaired }: Chosen,
  { learns_from }: Use,
): string | null {
  const preference = learns_from === "pairs";
  for (
    const [input, setting, on] of [
      ["score", "head: score", head],
      ["label", "unpaired: {}", unpaired],
    ] as const
  ) {
    const name = setting.split(":")[0];
    const beside = `write ${name}: null beside the file's name`;
    if (on && !preference) {
      return `algorithm.${name} is given, but learning from ${learns_from} trains no such ` +
        `model: ${beside}, or use flow: preference`;
    }
    if (on && !inputs.includes(input)) {
      return `algorithm.${name} says that its loss reads x.${input}, which it does not: ` +
        beside;
    }
    if (preference && !on && inputs.includes(input)) {
      return `its loss reads '${input}', but its text does not show x.${input}: write ${setting} ` +
        "beside the file's name";
    }
  }
  if (unpaired && pairs) {
    return "its loss reads 'label', of single completions, but also compares pairs";
  }
  if (mismatched && !unpaired) {
    return "it has MISMATCHED = True, but its loss reads no 'label': leave MISMATCHED out";
  }
  if (unpaired && mismatched !== unpaired.mismatched) {
    return mismatched
      ? "MISMATCHED is true in it, but its text does not show MISMATCHED = True: write " +
        "unpaired: { mismatched: true } beside the file's name"
      : "algorithm.unpaired.mismatched is true, but the file has no MISMATCHED = True: add it, " +
        "or write unpaired: {}";
  }
  const flowInputs = preference && unpaired ? FLOW_INPUTS.labels : FLOW_INPUTS[learns_from];
  const known = preference && head ? LIVE.score : [...LIVE.language, ...flowInputs];
  const unknown = inputs.find((name) =>
    !name.startsWith("coef.") && ![...ALWAYS, ...known].includes(name)
  );
  if (unknown === undefined) return null;
  return head && preference
    ? `its loss reads '${unknown}', which a model that outputs a score does not have`
    : `its loss reads '${unknown}', which learning from ${learns_from} does not provide`;
}

/** A problem with how rewards become advantages. */
function misassigned(
  { needs, pairs }: AlgorithmDescription,
  { value_model, parts }: Chosen,
): string | null {
  if (needs === null) return "it has no credit(round, c), which turns rewards into advantages";
  const value = needs.find((name) => name === "values" || name === "bootstrap");
  if (value !== undefined && !value_model) {
    return `its credit reads '${value}', but it has no value_loss(x, c, s)`;
  }
  if (needs.includes("parts") && !parts) {
    return "its credit reads 'parts', but algorithm.parts is not true";
  }
  return pairs ? "its loss compares pairs, but this flow has none: use flow: preference" : null;
}

/** What only learning from rewards has. */
function rewardless(
  { value_inputs, coef }: AlgorithmDescription,
  learns_from: Use["learns_from"],
): string | null {
  if (value_inputs !== null) {
    return `it has a value_loss(x, c, s), but learning from ${learns_from} trains no value model`;
  }
  return Object.keys(coef).length > 0
    ? `credit returns its coefficients, but learning from ${learns_from} has no credit`
    : null;
}

function misgrouped(
  { group_min }: AlgorithmDescription,
  { samples_per_prompt }: Use,
): string | null {
  if (samples_per_prompt === null || samples_per_prompt >= group_min) return null;
  return `it compares at least ${group_min} samples of a prompt, but samples_per_prompt is ` +
    `${samples_per_prompt}`;
}

function misvalued({ value_inputs }: AlgorithmDescription, { value_model }: Chosen): string | null {
  return (value_inputs !== null) === value_model
    ? null
    : `algorithm.value_model is ${value_model}, but it has ${value_inputs === null ? "no" : "a"} ` +
      "value_loss";
}
