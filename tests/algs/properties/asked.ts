import type { EvaluatedStep } from "../../../algs/mod.ts";
import type { Cut, LossUnderTest, Outcome } from "./asked_of.ts";

/** Everything in one micro-batch on one rank. */
export const firstCut = ({ sequences }: EvaluatedStep): Cut => [[[...sequences.keys()]]];

/** The outcomes of whole steps. */
export async function differentiateWhole(
  loss: LossUnderTest,
  steps: readonly EvaluatedStep[],
  options: { corners?: boolean } = {},
): Promise<Outcome[]> {
  const cases = steps.map((step) => ({ step, cuts: [firstCut(step)], ...options }));
  return (await loss.differentiate(cases)).map(([outcome]) => outcome!);
}

/** The coefficients that a loss reads. */
export const coefOf = ({ reads }: LossUnderTest) =>
  reads.flatMap((name) => (name.startsWith("coef.") ? [name.slice("coef.".length)] : []));

export function once<T>(make: () => Promise<T>): () => Promise<T> {
  let pending: Promise<T> | undefined;
  return () => pending ??= make();
}
