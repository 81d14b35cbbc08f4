export * from "./terms/aggregation.ts";
export * from "./algorithm.ts";
export * from "./credit/baselines.ts";
export * from "./choice.ts";
export * from "./terms/clip.ts";
export * from "./credit/credit.ts";
export * from "./terms/importance.ts";
export * from "./terms/kl.ts";
export * from "./credit/kl_credit.ts";
export * from "./language/mod.ts";
export * from "./terms/overlong.ts";
export type {
  PolicyAlgorithm,
  PolicyDeclaration,
  PolicyGradient,
} from "./families/policy_algorithm.ts";
export * from "./terms/policy_gradient.ts";
export * from "./terms/refill.ts";
export { profileOf, profilesOf } from "./profiles/profiles.ts";
export { inPython, OpenedAlgorithm, parsePythonAlgorithm, PythonAlgorithm } from "./python.ts";
export * from "./table.ts";
export * from "./terms/terms.ts";
export * from "./terms/truncation.ts";
export type { EvaluatedSequence, Evaluation, Frozen } from "./language/evaluate.ts";
export type { Many } from "./language/operations.ts";
