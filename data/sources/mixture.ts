/** Sources that are mixed by weight: which source each draw reads. Nothing here has state. */
import { createHash } from "node:crypto";
import { z } from "zod";

const /** @internal */ weightSchema = z.union([
  z.number().nonnegative(),
  z.array(z.tuple([z.int().positive(), z.number().nonnegative()])).min(1),
]);
/** A source's share of the draws, relative to the others: constant, or points [round, weight]. */
export type Weight = z.infer<typeof weightSchema>;
/** Schema of {@linkcode Weight}. */
export const Weight: typeof weightSchema = weightSchema;

/**
 * The weight in a round: linear between two points, constant before the first and after the last.
 */
export function weightAt(weight: Weight, round: number): number {
  if (typeof weight === "number") return weight;
  const next = weight.findIndex(([at]) => at > round);
  if (next === 0) return weight[0]![1];
  if (next < 0) return weight.at(-1)![1];
  const [[from, low], [to, high]] = [weight[next - 1]!, weight[next]!];
  return low + (high - low) * ((round - from) / (to - from));
}

/**
 * The source of each draw in [from, from + count): independent choices in proportion to `weights`,
 * at least one of which is positive. A pure function of seed and draw.
 */
export function pickSources(
  weights: readonly number[],
  { seed, from, count }: { seed: number; from: number; count: number },
): number[] {
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  if (!(total > 0)) throw new RangeError(`Cannot pick a source by the weights ${weights}`);
  const last = weights.findLastIndex((weight) => weight > 0);
  return Array.from({ length: count }, (_, i) => {
    let remaining = (bits48(`${seed} mixture ${from + i}`) / 2 ** 48) * total;
    const source = weights.findIndex((weight) => (remaining -= weight) < 0);
    return source < 0 ? last : source; // Rounding may leave a little.
  });
}

/** The seed of the order in which a source's own rows are drawn. */
export function seedOfSource(seed: number, source: number): number {
  return bits48(`${seed} source ${source}`);
}

function bits48(text: string): number {
  return createHash("sha256").update(text).digest().readUIntBE(0, 6);
}
