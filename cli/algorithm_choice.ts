import { AlgorithmChoice, ALGORITHMS, parsePythonAlgorithm, profileOf } from "../algs/mod.ts";
import { algorithmBlock, didYouMean, overridden } from "../configs/mod.ts";
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
  return parsed({ name, ...profile?.settings, ...written }, { name, doing });
}

/** An algorithm's file with settings, its `Config`'s and those beside its name. */
export async function fileChoiceOf(
  path: string,
  overrides: readonly string[],
  doing: string,
): Promise<AlgorithmChoice> {
  const algorithm = await algorithmBlock({ ...settingsOf(overrides), name: path });
  return parsed(algorithm, { name: path, doing });
}

function parsed(block: unknown, { name, doing }: { name: string; doing: string }): AlgorithmChoice {
  const parsed = AlgorithmChoice.safeParse(block);
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
