import { AlgorithmChoice, ALGORITHMS, parsePythonAlgorithm, profileOf } from "../algs/mod.ts";
import { didYouMean, overridden } from "../configs/mod.ts";
import { InvalidInputError } from "../engine/mod.ts";

/** The algorithm with these settings; a profile's fill in what is not written. */
export function choiceOf(
  name: string,
  overrides: readonly string[],
  doing = "show",
): AlgorithmChoice {
  const names = Object.keys(ALGORITHMS);
  if (parsePythonAlgorithm(name) !== null) {
    const why =
      "because it is in Python: the file is the loss, and 'loss try' runs it on a recorded batch";
    throw new InvalidInputError(`Cannot ${doing} the expression of '${name}' ${why}`, { name });
  }
  if (!names.includes(name)) {
    const near = didYouMean(name, names);
    throw new InvalidInputError(
      `Cannot ${doing} '${name}' because there is no such algorithm${near}: ${names.join(", ")}`,
    );
  }
  const written = settingsOf(overrides);
  const profile = profileOf(String(written.profile), name);
  const parsed = AlgorithmChoice.safeParse({ name, ...profile?.settings, ...written });
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) =>
    `${path.join(".") || name}: ${message}`
  );
  throw new InvalidInputError(
    `Cannot ${doing} '${name}' with these settings:\n  ${problems.join("\n  ")}`,
  );
}

/** Settings as overrides of a configuration write them; an `algorithm.` prefix is allowed. */
export function settingsOf(overrides: readonly string[]): Record<string, unknown> {
  try {
    return overridden({}, overrides.map((text) => text.replace(/^algorithm\./, ""))) as Record<
      string,
      unknown
    >;
  } catch (error) {
    if (error instanceof RangeError) throw new InvalidInputError(error.message);
    throw error;
  }
}
