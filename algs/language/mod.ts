export { LossError } from "./errors.ts";
export { evaluate, type EvaluatedStep, layoutOf } from "./evaluate.ts";
export { Expr } from "./expr.ts";
export { INPUTS } from "./inputs.ts";
export {
  chosen,
  groupMean,
  pairMean,
  perSequenceMean,
  perSequenceSum,
  rejected,
  scalar,
  sequenceMean,
  stepSum,
  tokenMean,
  where,
} from "./operations.ts";
export { type Clip, clipFraction, k1, k2, k3 } from "./policy_terms.ts";
export { expressionText } from "./print.ts";
export { torchModule } from "./torch_module.ts";
export { type LossFunction, type LossInputs, type LossParts, traceLoss } from "./trace.ts";
