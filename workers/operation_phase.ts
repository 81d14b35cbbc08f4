/** What a moment of a run counts as in fault tests; design section 6 draws kill points by it. */
export type Phase = "generation" | "publication" | "training" | "checkpoint" | "other";

const PHASES: Record<string, Phase> = {
  generate: "generation",
  publish: "publication",
  train: "training",
  score: "training",
  evaluate: "training",
  save: "checkpoint",
};

/**
 * `load` is part of publication at a sampler; at a trainer it is recovery, which has no separate
 * phase.
 */
export function operationPhase(role: string, op: string): Phase {
  if (role === "sampler" && op === "load") return "publication";
  return PHASES[op] ?? "other";
}
