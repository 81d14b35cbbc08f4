import { RE2JS } from "re2js";
import { z } from "zod";

const CHARACTERS_MAX = 1_000;
/** RE2's time is program × text, so both are bounded: the slowest pattern tried took 0.5 s. */
const PROGRAM_MAX = 2_000;
/** The longest text that a pattern is tried on. */
export const TEXT_CHARACTERS_MAX = 65_536;

/**
 * A regular expression for text that a model wrote. It runs on RE2 (npm `re2js`), whose time is
 * linear in the text: an engine that backtracks can need exponential time.
 */
export const rePattern: z.ZodString = z.string().min(1).max(CHARACTERS_MAX).refine(
  (text) => problemOf(text) === null,
  {
    error: ({ input }) =>
      "must be a regular expression of RE2, which has no lookaround and no backreferences: " +
      problemOf(String(input)),
  },
);

/** The number of a pattern's capture groups; 0 if it is no pattern. */
export function captureGroups(pattern: string): number {
  return problemOf(pattern) === null ? RE2JS.compile(pattern).groupCount() : 0;
}

function problemOf(pattern: string): string | null {
  try {
    const size = RE2JS.compile(pattern).programSize();
    return size <= PROGRAM_MAX ? null : "its repetitions are too large";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
