import { profileOf } from "../../algs/mod.ts";
import { setAt } from "./overrides.ts";
import { isFields } from "../short_forms.ts";

/** What `algorithm.profile` did to a configuration. */
export type UsedProfile = {
  name: string;
  /** The framework and its version. */
  about: string;
  /** What it set, without what was written beside it. */
  set: Record<string, unknown>;
  /** Written settings that differ from the profile's, with the profile's value. */
  written: Record<string, unknown>;
  /** Where equality with the framework ends. */
  ends: readonly string[];
};

/**
 * Fills in what `algorithm.profile` sets and the user did not write. Without a known profile, does
 * nothing.
 */
export function withProfile(value: unknown): { value: unknown; profile: UsedProfile | null } {
  const algorithm = isFields(value) ? value.algorithm : null;
  if (
    !isFields(algorithm) || typeof algorithm.name !== "string" ||
    typeof algorithm.profile !== "string"
  ) {
    return { value, profile: null };
  }
  const found = profileOf(algorithm.profile, algorithm.name);
  if (found === null) return { value, profile: null }; // The schema says what is wrong with it.
  const { about, settings, ends } = found;
  const entries = Object.entries(settings);
  const set = Object.fromEntries(entries.filter(([key]) => !(key in algorithm)));
  const written = Object.fromEntries(
    entries.filter(([key, profileValue]) => key in algorithm && algorithm[key] !== profileValue),
  );
  return {
    value: setAt(value, { path: ["algorithm"], to: { ...algorithm, ...set } }),
    profile: { name: algorithm.profile, about, set, written, ends },
  };
}
