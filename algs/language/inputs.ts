import type { Kind } from "../../data/mod.ts";

type Input = {
  readonly kind: Kind;
  /** Which model computes it while it is trained; null: it is known in advance. */
  readonly live: "policy" | "value" | "score" | null;
};

/** Every input of a loss except the coefficients. */
export const /** @internal */ INPUTS = {
  logp: { kind: "token", live: "policy" },
  entropy: { kind: "token", live: "policy" },
  values: { kind: "token", live: "value" },
  score: { kind: "sequence", live: "score" },
  old_logp: { kind: "token", live: null },
  behaviour_logp: { kind: "token", live: null },
  ref_logp: { kind: "token", live: null },
  advantage: { kind: "token", live: null },
  returns: { kind: "token", live: null },
  old_values: { kind: "token", live: null },
  length: { kind: "sequence", live: null },
  group_length: { kind: "sequence", live: null },
  staleness: { kind: "sequence", live: null },
  /** 1: a desirable completion; -1: an undesirable one; 0: one behind another row's prompt. */
  label: { kind: "sequence", live: null },
  margin: { kind: "pair", live: null },
  n_tokens: { kind: "step", live: null },
  n_sequences: { kind: "step", live: null },
  n_groups: { kind: "step", live: null },
  n_pairs: { kind: "step", live: null },
} as const satisfies Record<string, Input>;

/** @internal */
export type InputName = keyof typeof INPUTS;

/** The model that computes an input, or null. Coefficients are step inputs named `coef.NAME`. */
export function liveModel(name: string): Input["live"] {
  return (INPUTS as Record<string, Input>)[name]?.live ?? null;
}
