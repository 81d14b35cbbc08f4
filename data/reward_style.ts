import { z } from "zod";

/**
 * How a reward function in Python is called: by the conventions of the framework that it was
 * written for. The worker's `rewards/styles/table.py` has what each means.
 * @internal
 */
export const RewardStyle = z.enum([
  "holdfast",
  "trl",
  "verl",
  "verl_batch",
  "openrlhf",
  "feynrl",
  "feynrl_batch",
  "verifiers",
  "verifiers_group",
  "verifiers_rubric",
  "verifiers_v1",
  "slime",
  "slime_group",
  "nemo_gym",
]);
/**
 * A value of {@linkcode RewardStyle}.
 * @internal
 */
export type RewardStyle = z.infer<typeof RewardStyle>;
