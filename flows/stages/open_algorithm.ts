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

/** What a flow gives to a loss besides the live policy, the counts and the lengths. */
const GIVEN = {
  rewards: ["old_logp", "behaviour_logp", "ref_logp", "advantage", "returns", "staleness"],
  completions: [],
  pairs: ["ref_logp", "margin", "n_pairs"],
};
const ALWAYS = ["logp", "entropy", "length", "group_length", "n_tokens", "n_sequences", "n_groups"];

const Use = z.strictObject({
  learns_from: z.enum(["rewards", "completions", "pairs"]),
  value_model: z.boolean(),
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
  version: 1,
  input: Input,
  output: OpenedAlgorithm,
  runs_on: "trainer",
  phase: "other",
  // Rounds of the prefix used the file as the parent recorded it.
  fork: { anew: true },
  async run({ algorithm, use, updates_per_batch }, ctx) {
    const given = await sourceOf(algorithm);
    const described = await ctx.resource(Trainer).openAlgorithm(
      await ctx.artifacts.putJson(given),
      ctx,
    );
    const fault = misuse(described, { ...use, parts: algorithm.parts });
    if (fault !== null) {
      throw new BadDataError(`Cannot use ${given.file} because ${fault}`, {
        source: algorithm.source,
      });
    }
    const python: PythonSource = { ...given, settings: described.settings };
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
    };
  },
});

/** @throws {BadDataError} If the file is missing, or has changed since the run was created. */
export async function sourceOf(
  { source, settings, sha256 }: PythonAlgorithm,
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
  return { file: basename(source), source: new TextDecoder().decode(bytes), settings };
}

/** Why this flow cannot use a file; null if it can. */
export function misuse(
  described: AlgorithmDescription,
  use: Use & Pick<PythonAlgorithm, "parts">,
): string | null {
  const { needs, value_inputs, inputs, group_min, pairs, coef } = described;
  const unknown = inputs.find((name) =>
    !name.startsWith("coef.") && ![...ALWAYS, ...GIVEN[use.learns_from]].includes(name)
  );
  if (unknown !== undefined) {
    return `its loss reads '${unknown}', which learning from ${use.learns_from} does not provide`;
  }
  if (use.learns_from === "rewards") {
    if (needs === null) return "it has no credit(round, c), which turns rewards into advantages";
    const value = needs.find((name) => name === "values" || name === "bootstrap");
    if (value !== undefined && !use.value_model) {
      return `its credit reads '${value}', but it has no value_loss(x, c, s)`;
    }
    if (needs.includes("parts") && !use.parts) {
      return "its credit reads 'parts', but algorithm.parts is not true";
    }
    if (pairs) return "its loss compares pairs, but this flow has none: use flow: preference";
  } else if (value_inputs !== null) {
    return `it has a value_loss(x, c, s), but learning from ${use.learns_from} ` +
      "trains no value model";
  } else if (Object.keys(coef).length > 0) {
    return `credit returns its coefficients, but learning from ${use.learns_from} ` +
      "has no credit";
  }
  if (use.samples_per_prompt !== null && use.samples_per_prompt < group_min) {
    return `it compares at least ${group_min} samples of a prompt, but samples_per_prompt is ` +
      `${use.samples_per_prompt}`;
  }
  if ((value_inputs !== null) !== use.value_model) {
    return `algorithm.value_model is ${use.value_model}, but it has ${
      value_inputs === null ? "no" : "a"
    } value_loss`;
  }
  return null;
}
