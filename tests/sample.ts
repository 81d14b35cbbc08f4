/** True where a long suite runs whole: anywhere but in CI, or with `HOLDFAST_TEST_WHOLE=true`. */
export const WHOLE = Deno.env.get("CI") !== "true" ||
  Deno.env.get("HOLDFAST_TEST_WHOLE") === "true";

/** The cases of a long suite that run here: in CI, which has an hour, the first `count`. */
export function sampled<Case>(cases: readonly Case[], count = 1): readonly Case[] {
  return WHOLE ? cases : cases.slice(0, count);
}
