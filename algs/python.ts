import { z } from "zod";
import {
  AlgorithmDescription,
  ArtifactRef,
  PythonSettings,
  ScoredColumn,
  setting,
} from "../data/mod.ts";
import type { AnyAlgorithm } from "./algorithm.ts";
import { refillBy, refillSettings } from "./terms/refill.ts";
import { truncationSettings } from "./terms/truncation.ts";

/** The path of an algorithm's file, written instead of a name; null for any other text. */
export function parsePythonAlgorithm(text: string): string | null {
  return /\.py$/.test(text) ? text : null;
}

/** An algorithm in a Python file. The trainer runs it; this is only its description. */
export const PythonAlgorithm = z.strictObject({
  name: z.literal("python").describe("An algorithm in a Python file. Short form: `path.py`."),
  source: z.string().regex(/\.py$/, "must be a path that ends in .py").describe(
    "The file, with `loss(x, c, s)` and, as needed, `Config`, `credit(round, c)`, " +
      "`statistics(x, c)`, `value_loss(x, c)`.",
  ),
  settings: PythonSettings.default({}).describe(
    "Of the file's `Config`. They may also be next to the name, as for other algorithms.",
  ),
  profile: z.string().optional().describe(
    "Which of the file's `PROFILES` applies to settings that are left out.",
  ),
  ...truncationSettings,
  ...refillSettings(0),
  value_model: z.boolean().default(false).describe(
    "Whether a value model is also trained: the file has a `value_loss`. Read from the " +
      "file if absent.",
  ),
  parts: z.boolean().optional().describe(
    "Whether credit reads each reward by itself, `round.parts`. Read from the file if absent.",
  ).register(setting, { numerics: false, fork: "free", resume: "refused" }),
  head: z.enum(["score"]).nullable().optional().describe(
    "`score`: a reward model is trained, because the loss reads `x.score`; null: a language " +
      "model. Read from the file if absent.",
  ),
  unpaired: z.strictObject({
    mismatched: z.boolean().default(false).describe(
      "Whether the loss also reads completions behind the prompts of other rows: the file has " +
        "`MISMATCHED = True`.",
    ),
  }).nullable().optional().describe(
    "The loss reads `x.label` of single completions; null: it does not. Read from the file if " +
      "absent.",
  ),
  sha256: z.string().nullable().default(null).describe(
    "sha256 of the file when the run was created. Read from the file.",
  ),
});
export type PythonAlgorithm = z.infer<typeof PythonAlgorithm>;

/** Whether an algorithm is the user's Python file. */
export function inPython<C extends { name: string }>(
  choice: C,
): choice is Extract<C, PythonAlgorithm> {
  return "source" in choice;
}

/** What is known about a file before a trainer opens it. */
export function unopened(file: PythonAlgorithm): AnyAlgorithm {
  const { source, value_model, parts, head, unpaired } = file;
  const elsewhere = () => {
    throw new RangeError(
      `Cannot compute with ${source} here because it is in Python and only a trainer opens it, ` +
        "see open_algorithm",
    );
  };
  return {
    name: "python",
    config: PythonAlgorithm.omit({ name: true }),
    credit: { needs: parts ? ["parts"] : [], assign: elsewhere },
    refill: () => refillBy(file),
    head: head ?? undefined,
    unpaired: unpaired ? () => unpaired : undefined,
    loss: elsewhere,
    value_loss: value_model ? elsewhere : undefined,
  };
}

const /** @internal */ openedAlgorithmSchema = AlgorithmDescription.extend({
  source: ArtifactRef.describe("JSON of a PythonSource."),
  loss: ArtifactRef.describe("JSON of a PythonLoss."),
  value_loss: ArtifactRef.nullable(),
  columns: z.array(ScoredColumn).describe("The columns to score before training."),
  stale_columns: z.array(ScoredColumn).describe("Those of groups that an older version sampled."),
});
/** A Python algorithm that a run has recorded: it no longer needs its file. */
export type OpenedAlgorithm = z.infer<typeof openedAlgorithmSchema>;
/** Schema of {@linkcode OpenedAlgorithm}. */
export const OpenedAlgorithm: typeof openedAlgorithmSchema = openedAlgorithmSchema;
