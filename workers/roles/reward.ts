import { z } from "zod";
import { StopReason } from "../../data/mod.ts";
import { defineRole, environmentOf, type Operations } from "./role.ts";
import { Arguments } from "../line/payload.ts";

/** The spec of the reward worker. */
const RewardSpec = z.strictObject({
  processes: z.int().positive().describe("Processes that score concurrently."),
});

/** What the processes of a reward function may use; null: no limit. */
const RewardProcess = z.strictObject({
  env: z.array(z.string()).describe("Variables that they inherit besides the usual ones."),
  memory_gib: z.number().nullable(),
  cpu_s: z.number().nullable(),
  file_mib: z.number().nullable(),
  processes_max: z.int(),
  isolate: z.boolean(),
});
/** @internal */
type RewardProcess = z.infer<typeof RewardProcess>;

/** A reward model and its settings. */
const RewardModelSettings = z.strictObject({
  path: z.string(),
  dtype: z.enum(["float32", "bfloat16", "float16"]),
  device: z.enum(["auto", "cpu", "cuda"]),
  threads: z.int(),
  template_arguments: z.record(z.string(), z.unknown()),
  turn_end: z.enum(["template", "eos_token"]),
  batch_tokens_max: z.int(),
});
/** @internal */
export type RewardModelSettings = z.infer<typeof RewardModelSettings>;

/** A completion to score. */
const CompletionItem = z.strictObject({
  id: z.string(),
  completion: z.string(),
  tokens: z.int().describe("How many were sampled."),
  token_ids: z.array(z.int()).describe("Everything after the prompt, as it was sampled."),
  stop: StopReason,
});

/** The score of one item, or why it has none. */
const ScoredItem = z.strictObject({
  id: z.string(),
  outcome: z.enum(["ok", "none", "timeout", "error", "bad_return", "crash", "bad_answer"]).describe(
    "none: there is nothing to grade by.",
  ),
  score: z.number().nullable().describe("null: there is none."),
  metrics: z.record(z.string(), z.number()),
  error: z.string().nullable(),
  ms: z.number(),
  token_scores: z.array(z.number()).optional().describe(
    "What each token after the prompt earns; `score` is their sum. Absent: only the sum is known.",
  ),
  code: z.string().optional().describe("The `Identity` of what gave it."),
});
export type ScoredItem = z.infer<typeof ScoredItem>;

const output = z.strictObject({ results: z.array(ScoredItem).describe("In any order.") });
/** What a function's results depend on besides its sample, and what one call scores. */
const Identity = z.strictObject({ code: z.string(), unit: z.enum(["sample", "group"]) });
const shared = Arguments.describe(
  "What all items have in common, so a long row is sent once.",
);

/** What a function is imported by. */
const imported = z.strictObject({
  function: z.string().describe("`path.py:function`"),
  style: z.string().nullable().describe(
    "A `RewardStyle`: how it is called; null: as its signature says.",
  ),
  settings: z.string().nullable().describe(
    "JSON: `function` makes the function to call, from these; null: it is the function.",
  ),
  process: RewardProcess,
});

const operations = {
  /**
   * Calls a function of the user for the items, all samples of one prompt, in separate processes.
   * `shared`: {prompt, row_prompt, prompt_ids, columns, answer}.
   */
  score: {
    args: imported.extend({
      timeout_ms: z.number().positive().describe("Of one call."),
      shared,
      items: z.array(CompletionItem),
    }),
    output,
    timed: "score",
  },
  /** Imports a function of the user and says what it is, without calling it. */
  identify: { args: imported, output: Identity },
  /** Asks a reward model about all items. `shared`: {prompt, tools?}. */
  score_by_model: {
    args: z.strictObject({ model: RewardModelSettings, shared, items: z.array(CompletionItem) }),
    output,
    timed: "score",
  },
} satisfies Operations;

/** The role of workers that score samples outside the engine. */
export const rewardRole = defineRole({
  name: "reward",
  module: "holdfast_worker.rewards.worker",
  spec: RewardSpec,
  operations,
  parts: {
    Arguments,
    RewardProcess,
    RewardModelSettings,
    CompletionItem,
    ScoredItem,
    Identity,
  },
  rebuilt: "by_start",
  starts: "on_first_use",
  groups: ({ trainer, reward_processes: processes }) => [{
    group: "reward",
    ranks: 1,
    spec: { processes },
    gpus: null,
    // A user's reward may import the trainer's packages.
    environment: environmentOf(trainer),
    python: trainer.python,
  }],
});
