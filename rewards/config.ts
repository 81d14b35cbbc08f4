import { z } from "zod";
import type { RewardInput, Score } from "./define.ts";
import { parsePythonReward, PythonRewardConfig } from "./python.ts";
import { RewardModelConfig, type RewardModelSettings } from "./reward_model.ts";
import { REWARDS } from "./table.ts";

const common = {
  weight: z.number().default(1).describe("The reward of a sample is the sum of weight x score over the list."),
  label: z.string().regex(/^[a-z0-9_]+$/, "must be lower case letters, digits and _").optional().describe(
    "The name in metrics (`reward/LABEL/mean`); by default the reward's own.",
  ),
};

const { exact_match, gsm8k, length } = REWARDS;

/** One entry of `reward:`; the reward's own settings stand beside its name and weight. */
export const RewardConfig = z.discriminatedUnion("name", [
  z.strictObject({
    name: z.literal("exact_match").describe("1 if the completion is the row's answer, else 0."),
    ...common,
    ...exact_match.config.shape,
  }),
  z.strictObject({
    name: z.literal("gsm8k").describe("1 if the number after the last #### is the row's answer, else 0."),
    ...common,
    ...gsm8k.config.shape,
  }),
  z.strictObject({
    name: z.literal("length").describe("The completion's length, from 0 to 1."),
    ...common,
    ...length.config.shape,
  }),
  PythonRewardConfig.extend(common),
  RewardModelConfig.extend(common),
]);
export type RewardConfig = z.infer<typeof RewardConfig>;

/** A configured reward, ready to be called or, for `process`, to be sent to the pool. */
export type ScoringFunction = {
  readonly name: string;
  readonly weight: number;
  readonly runs_on: "engine" | "process";
  /** For `process`: `path.py:function`, else null. */
  readonly source: string | null;
  /** For `process` in place of a function: the reward model to ask. */
  readonly model?: RewardModelSettings;
  readonly timeout_ms: number;
  score(
    sample: Omit<RewardInput, "row"> & { row: Record<string, unknown>; answer: string | undefined },
  ): Promise<number>;
};

const ENGINE_TIMEOUT_MS = 10_000;

export function labelOf(config: RewardConfig): string {
  if (config.label !== undefined) return config.label;
  return config.name === "python" ? parsePythonReward(config.source)!.function.toLowerCase() : config.name;
}

/** The functions of a resolved `reward:` list, in its order. */
export function scoringFunctions(configs: readonly RewardConfig[]): ScoringFunction[] {
  return configs.map((config) => {
    if (config.name === "python") return inProcess(config, { source: config.source, timeout_ms: config.timeout_ms });
    if (config.name === "reward_model") return inProcess(config, { model: settingsOf(config) });
    const { name, weight, label: _, ...own } = config;
    // The union pairs each name with its own settings; TypeScript cannot follow that through the table.
    const reward = REWARDS[name] as unknown as { score(input: RewardInput, config: unknown): Score | Promise<Score> };
    return {
      name: labelOf(config),
      weight,
      runs_on: "engine",
      source: null,
      timeout_ms: ENGINE_TIMEOUT_MS,
      score: async ({ row, answer, ...sample }) =>
        checkedScore(await reward.score({ ...sample, row: { ...row, answer } }, own), labelOf(config)),
    };
  });
}

function settingsOf(config: RewardModelConfig & { weight: number; label?: string }): RewardModelSettings {
  const { name: _, weight: __, label: ___, ...settings } = config;
  return settings;
}

/** A reward that the reward worker computes. */
function inProcess(
  config: RewardConfig,
  how: { source?: string; timeout_ms?: number; model?: RewardModelSettings },
): ScoringFunction {
  const name = labelOf(config);
  return {
    name,
    weight: config.weight,
    runs_on: "process",
    source: null,
    timeout_ms: ENGINE_TIMEOUT_MS,
    ...how,
    score() {
      throw new TypeError(`Cannot score with '${name}' in the engine as it is Python: send it to the reward processes`);
    },
  };
}

/** @throws {RangeError} If a score is not a finite number. */
export function checkedScore(score: Score, name: string): number {
  const value = typeof score === "number" ? score : score?.score;
  if (Number.isFinite(value)) return value;
  throw new RangeError(`Cannot use a score of '${name}' as it is not a finite number: it is ${value}`);
}
