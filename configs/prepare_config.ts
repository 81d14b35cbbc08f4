import { z } from "zod";
import { PREPARED, PreparedSource, ReadSource, setting } from "../data/mod.ts";
import { WorkersConfig } from "../workers/mod.ts";
import type { Issue } from "./problems/issue_text.ts";

const SPLIT_NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

const limit = (unit: "characters" | "tokens", what: string, kept: string) =>
  z.int().nonnegative().nullable().default(null).describe(
    `${kept === "at least" ? "Fewest" : "Most"} ${unit} of ${what}; null: no limit.`,
  ).register(setting, { ...PREPARED, unit });

const PROMPT = "a row's prompt";
const SEQUENCE = "a row's prompt with its longest completion";

const /** @internal */ lengthLimitsSchema = z.strictObject({
  prompt_characters_min: limit("characters", PROMPT, "at least"),
  prompt_characters_max: limit("characters", PROMPT, "at most"),
  sequence_characters_min: limit("characters", SEQUENCE, "at least"),
  sequence_characters_max: limit("characters", SEQUENCE, "at most"),
  prompt_tokens_min: limit("tokens", PROMPT, "at least"),
  prompt_tokens_max: limit("tokens", PROMPT, "at most"),
  sequence_tokens_min: limit("tokens", SEQUENCE, "at least"),
  sequence_tokens_max: limit("tokens", SEQUENCE, "at most"),
});
/** The lengths that rows may have. */
export type LengthLimits = z.infer<typeof lengthLimitsSchema>;
/** Schema of {@linkcode LengthLimits}. */
export const LengthLimits: typeof lengthLimitsSchema = lengthLimitsSchema;

const /** @internal */ decontaminationSchema = z.strictObject({
  ngram_words: z.int().positive().max(1000).default(13).describe(
    "Words of a sequence that no row may share with an evaluation set. A shorter text of a set " +
      "removes only rows of exactly its words.",
  ).register(setting, { ...PREPARED, unit: "words" }),
  sets: z.array(ReadSource.pick({ path: true, format: true, name: true, fields: true })).min(1)
    .describe("The evaluation sets; only their prompts are compared."),
});
/** Which evaluation sets rows must not contain. */
export type Decontamination = z.infer<typeof decontaminationSchema>;
/** Schema of {@linkcode Decontamination}. */
export const Decontamination: typeof decontaminationSchema = decontaminationSchema;

/** What every prepared row has besides a prompt. */
export const PreparedNeeds = z.enum(["prompt", "answer", "completion", "preference"]);
/** What every prepared row has besides a prompt. */
export type PreparedNeeds = z.infer<typeof PreparedNeeds>;

const tokenizerSchema = z.strictObject({
  path: z.string().min(1).describe(
    "The directory of a model or its tokenizer, in the Hugging Face format.",
  ).register(setting, PREPARED),
  python: z.string().min(1).nullable().default(null).describe(
    "Interpreter of a custom environment, which Holdfast checks but never changes; null: a " +
      "managed environment.",
  ).register(setting, PREPARED),
});

/** What a preparation has besides what every flow has. */
export const PREPARE_FIELDS = {
  output: z.string().min(1).describe(
    "The directory that the data is written to. It must be empty or missing.",
  ).register(setting, PREPARED),
  inputs: z.array(PreparedSource).min(1).describe("What is read, and how rows are mapped."),
  needs: PreparedNeeds.default("prompt").describe(
    "What every row has besides a prompt; preference: two completions, one of them better.",
  ).register(setting, PREPARED),
  on_bad_row: z.enum(["refuse", "drop"]).default("refuse").describe(
    "What a row does that cannot be read or lacks what it needs: it ends the run, or is dropped " +
      "and counted.",
  ).register(setting, PREPARED),
  deduplicate: z.enum(["none", "prompt", "row"]).default("row").describe(
    "Which later rows are duplicates: none, those with the same prompt, or those with the same " +
      "texts, answer and kept columns.",
  ).register(setting, PREPARED),
  lengths: LengthLimits.prefault({}).describe("Rows of different lengths are dropped."),
  tokenizer: tokenizerSchema.nullable().default(null).describe(
    "Counts the tokens of rows; null: lengths are counted in characters only.",
  ).register(setting, PREPARED),
  decontaminate: Decontamination.nullable().default(null).describe(
    "Rows that contain evaluation problems are dropped; null: nothing is compared.",
  ).register(setting, PREPARED),
  splits: z.record(z.string(), z.number().positive()).refine(
    (splits) => Object.keys(splits).length > 0,
    "name at least one split",
  ).refine((splits) => Object.keys(splits).every((name) => SPLIT_NAME.test(name)), {
    error: ({ input }) => {
      const name = Object.keys(input as object).find((name) => !SPLIT_NAME.test(name));
      return `'${name}' must be letters, digits, _ or -: it names a file`;
    },
  }).default({ train: 1 }).describe(
    "The splits of rows whose source names none, each with its weight relative to the others.",
  ).register(setting, PREPARED),
  workers: WorkersConfig.prefault({}).describe("Worker processes: time limits and addresses."),
};

type PrepareBlocks = {
  lengths?: LengthLimits;
  tokenizer?: object | null;
  inputs?: PreparedSource[];
};

/** Rules between the fields of a preparation. */
export const PREPARE_RULES: ((blocks: PrepareBlocks) => Issue[])[] = [
  tokensNeedTokenizer,
  limitsAreInOrder,
];

function tokensNeedTokenizer({ lengths, tokenizer }: PrepareBlocks): Issue[] {
  if (lengths === undefined || tokenizer !== null) return [];
  return Object.entries(lengths).filter(([name, value]) =>
    value !== null && name.includes("_tokens_")
  ).map(([name]) => ({
    path: ["lengths", name],
    message: "needs a tokenizer to count tokens with: add `tokenizer: { path: MODEL }`, or limit " +
      "characters",
  }));
}

function limitsAreInOrder({ lengths }: PrepareBlocks): Issue[] {
  if (lengths === undefined) return [];
  const limits = lengths as Record<string, number | null>;
  return Object.entries(limits).flatMap(([name, least]) => {
    const most = limits[name.replace(/_min$/, "_max")];
    if (!name.endsWith("_min") || least === null || most === null || least <= most!) return [];
    return [{
      path: ["lengths", name],
      message: `is ${least}, more than its maximum ${most}; no row would be left`,
    }];
  });
}
