import {
  type AlgorithmChoice,
  ALGORITHMS,
  expressionsOf,
  expressionText,
  masksTruncated,
  NewAlgorithm,
  parsePythonAlgorithm,
  profileOf,
  torchModule,
} from "../algs/mod.ts";
import { didYouMean, overridden } from "../configs/mod.ts";
import { InvalidInputError } from "../engine/mod.ts";
import { print, printJson } from "./output.ts";

export type LossShowOptions = { torch?: boolean; json?: boolean; value?: boolean };

const MASKED =
  "mask_truncated: completions cut by the token limit are left out of this step: out of every sum and every count";
const MASKED_NOT = "mask_truncated: the value model also learns from completions cut by the token limit";

/**
 * `loss show NAME [a=b ...]`: the loss of an algorithm with these settings, as the trainer computes it: in the loss
 * language, or with `--torch` as a standalone Python module. `--value`: the loss of its value model.
 */
export function showLoss(name: string, overrides: readonly string[], { torch, json, value }: LossShowOptions): void {
  const choice = choiceOf(name, overrides);
  const { loss, value_loss } = expressionsOf(choice);
  const expression = value ? value_loss : loss;
  if (expression === undefined) {
    throw new InvalidInputError(`Cannot show a value loss of '${name}' because it has none`);
  }
  const text = torch ? torchModule(expression, { title: value ? `${name}, value model` : name }) : null;
  if (json) return printJson({ algorithm: choice, ...(text === null ? { expression } : { torch: text }) });
  const comment = torch ? "#" : "//";
  print(`${comment} ${JSON.stringify(choice)}`);
  if (masksTruncated(choice)) print(`${comment} ${value ? MASKED_NOT : MASKED}`);
  print((text ?? expressionText(expression)).trimEnd());
}

/** The algorithm with these settings; a profile's fill in what is not written. */
export function choiceOf(name: string, overrides: readonly string[], doing = "show"): AlgorithmChoice {
  const names = Object.keys(ALGORITHMS);
  if (parsePythonAlgorithm(name) !== null) {
    const why = "because it is in Python: the file is the loss, and 'loss try' runs it on a recorded batch";
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
  const parsed = NewAlgorithm.safeParse({ name, ...profile?.settings, ...written });
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".") || name}: ${message}`);
  throw new InvalidInputError(`Cannot ${doing} '${name}' with these settings:\n  ${problems.join("\n  ")}`);
}

/** Settings as overrides of a configuration write them; an `algorithm.` prefix is allowed. */
export function settingsOf(overrides: readonly string[]): Record<string, unknown> {
  try {
    return overridden({}, overrides.map((text) => text.replace(/^algorithm\./, ""))) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof RangeError) throw new InvalidInputError(error.message);
    throw error;
  }
}
