/**
 * Settings of an algorithm by its schema alone: each pair of values of two settings stands in one
 * of its combinations.
 */
import { z } from "zod";
import { type AnyAlgorithm, profileOf, profilesOf } from "../../../algs/mod.ts";
import { uniform } from "./steps.ts";

type Settings = Record<string, unknown>;
type Choices = [string, unknown[]][];

/**
 * Numbers around what settings mean: nothing, a small weight or low bound, a bound above 1, a
 * length.
 */
const NUMBERS = [0, 0.04, 1.1, 8];
/**
 * How often a pair that is not covered yet is tried with other values beside it: some exclude each
 * other.
 */
const TRIES = 30;

/** What a setting may be: all options, and numbers that its schema accepts beside its default. */
function valuesOf(field: z.ZodType): unknown[] {
  const options = [undefined, null, false, true, ...NUMBERS, ...enumOptions(field)];
  const accepted = options.filter((value) => field.safeParse(value).success).map((value) =>
    field.parse(value)
  );
  return [...new Set(accepted)];
}

function enumOptions(field: z.ZodType): readonly unknown[] {
  if (field instanceof z.ZodEnum) return field.options;
  const { innerType } = field.def as { innerType?: z.ZodType };
  return innerType === undefined ? [] : enumOptions(innerType);
}

/**
 * Combinations that the algorithm accepts: all pairs, each profile, and each profile with one of
 * its settings changed.
 */
export function combinations(algorithm: AnyAlgorithm): Settings[] {
  const fields = Object.entries(algorithm.config.shape) as [string, z.ZodType][];
  const choices: Choices = fields.map(([name, field]) => [name, valuesOf(field)]);
  const profiles = profilesOf(algorithm.name).flatMap((framework) => {
    const { settings } = profileOf(framework, algorithm.name)!;
    return [
      settings,
      ...choices.flatMap(([name, values]) =>
        values.map((value) => ({ ...settings, [name]: value }))
      ),
    ];
  });
  const accepts = (settings: Settings) => algorithm.config.safeParse(settings).success;
  return [{}, ...pairwise(choices, accepts), ...profiles.filter(accepts)];
}

function pairwise(choices: Choices, accepts: (settings: Settings) => boolean): Settings[] {
  const next = uniform(7);
  const pick = (values: unknown[]) => values[Math.floor(next() * values.length)];
  const found: Settings[] = [];
  const covered = new Set<string>();
  for (const [i, [first, values]] of choices.entries()) {
    for (const [second, others] of choices.slice(i + 1)) {
      for (const pair of values.flatMap((a) => others.map((b) => ({ [first]: a, [second]: b })))) {
        if (covered.has(JSON.stringify(pair))) continue;
        const tries = Array.from({ length: TRIES }, () => ({
          ...Object.fromEntries(choices.map(([name, all]) => [name, pick(all)])),
          ...pair,
        }));
        const settings = tries.find(accepts);
        if (settings === undefined) continue;
        found.push(settings);
        for (const one of pairsOf(choices, settings)) covered.add(one);
      }
    }
  }
  return found;
}

function pairsOf(choices: Choices, settings: Settings): string[] {
  const names = choices.map(([name]) => name);
  return names.flatMap((a, i) =>
    names.slice(i + 1).map((b) => JSON.stringify({ [a]: settings[a], [b]: settings[b] }))
  );
}
