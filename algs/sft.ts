/**
 * Supervised fine-tuning: the mean negative log-likelihood of the completion's tokens.
 *
 *     L = − Σ_{i,t} log π(y_{i,t} | y_{i,<t}) ÷ n_tokens
 *
 * The mean runs over all trained tokens of the optimizer step, as in TRL and OpenRLHF's default, so
 * long completions weigh more than short ones and the split into micro-batches does not matter.
 */
import { z } from "zod";
import { defineAlgorithm } from "./algorithm.ts";
import { tokenMean } from "./language/mod.ts";

export const sft = defineAlgorithm({
  name: "sft",
  about: "Supervised fine-tuning: the completion's log-likelihood.",
  config: z.strictObject({}),
  dropout: true, // As much as trainer.dropout says: none.
  loss: ({ logp }) => ({ loss: tokenMean(logp.neg()) }),
});
