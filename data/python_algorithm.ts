import { z } from "zod";
import { Expression } from "./expression.ts";

const scalar = z.union([z.number(), z.string(), z.boolean(), z.null()]);

/** Settings of a file's `Config`, by name. */
export const PythonSettings = z.record(z.string(), z.union([scalar, z.array(scalar)]));

/** An algorithm's file as recorded: its whole text, so later edits do not affect the run. */
export const PythonSource = z.strictObject({
  file: z.string().describe("Its name in error messages."),
  source: z.string().describe("Its text."),
  settings: PythonSettings,
  profile: z.string().optional().describe(
    "Which of its `PROFILES` fills in settings; absent once they all are written.",
  ),
});
export type PythonSource = z.infer<typeof PythonSource>;

/** One loss of an algorithm in Python. */
export const PythonLoss = z.strictObject({
  version: z.literal(1),
  python: PythonSource.extend({
    part: z.enum(["loss", "value_loss"]).describe("The file's function that the loss calls."),
  }),
});
export type PythonLoss = z.infer<typeof PythonLoss>;

/** A loss as a version's record names it. */
const RecordedLoss = z.union([Expression, PythonLoss]);
type RecordedLoss = z.infer<typeof RecordedLoss>;

const CREDIT_NEEDS = ["parts", "old_logp", "ref_logp", "values", "bootstrap", "coef"] as const;

const /** @internal */ algorithmDescriptionSchema = z.strictObject({
  settings: PythonSettings.describe("All of them, including defaults."),
  inputs: z.array(z.string()).describe("What the loss reads."),
  metrics: z.array(z.string()),
  needs: z.array(z.enum(CREDIT_NEEDS)).nullable().describe(
    "What credit reads besides the samples' rewards; null: no credit.",
  ),
  value_inputs: z.array(z.string()).nullable().describe(
    "What the value model's loss reads; null: none.",
  ),
  group_min: z.int().positive(),
  coef: z.record(z.string(), z.number()).describe(
    "Coefficients that change during a run, with their initial values.",
  ),
  pairs: z.boolean().describe("The loss compares the two sequences of a pair."),
  mismatched: z.boolean().describe("`MISMATCHED` of the file."),
  live_statistics: z.boolean().describe("A forward without gradient precedes the step."),
});
/** What the trainer found in an algorithm's file when it tried all of it on synthetic data. */
export type AlgorithmDescription = z.infer<typeof algorithmDescriptionSchema>;
/** Schema of {@linkcode AlgorithmDescription}. */
export const AlgorithmDescription: typeof algorithmDescriptionSchema = algorithmDescriptionSchema;

const /** @internal */ assignedCreditSchema = z.strictObject({
  advantage: z.union([z.array(z.number()), z.array(z.array(z.number()))]).describe("[N] or [N][T]"),
  returns: z.array(z.array(z.number())).optional().describe("[N][T]"),
  coef: z.record(z.string(), z.number()).optional().describe("Of the next round."),
  metrics: z.record(z.string(), z.number()).optional(),
});
/**
 * What a file's `credit` assigns to a round of N sequences; T is a sequence's number of sampled
 * tokens.
 */
export type AssignedCredit = z.infer<typeof assignedCreditSchema>;
/** Schema of {@linkcode AssignedCredit}. */
export const AssignedCredit: typeof assignedCreditSchema = assignedCreditSchema;
