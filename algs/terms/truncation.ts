/**
 * Completions cut by the token limit: their reward depends on their length, not on their quality.
 * With `mask_truncated` they still count in credit, where the others are compared with them, but
 * none of their tokens is in the policy's loss: neither in its sums nor in its denominators. Yu et
 * al. 2025, arXiv:2503.14476, section 3.4, "overlong filtering".
 */
import { z } from "zod";

/** Setting of every algorithm that learns from rewards. */
export const truncationSettings = {
  mask_truncated: z.boolean().default(false).describe(
    "Leave completions cut by the token limit out of the policy's loss; they still count in " +
      "credit.",
  ),
};
