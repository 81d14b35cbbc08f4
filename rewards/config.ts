import { z } from "zod";
import { RewardStyle } from "../data/mod.ts";
import { CODE_SOURCE, codeCallTimeout, CodeConfig, codeSettings, lacksCases } from "./code.ts";
import type { RewardInput, RewardRow, Score } from "./define.ts";
import { entrySettings, ownSettings, sourcesOf } from "./entry_settings.ts";
import { keptBy } from "./kept_by.ts";
import { hasOneForm } from "./format.ts";
import { hasOneScale } from "./judge.ts";
import { MATH_SOURCE, MathConfig } from "./math.ts";
import { parsePythonReward, processOf, PythonRewardConfig, type RewardProcess } from "./python.ts";
import { RewardModelConfig, type RewardModelSettings } from "./reward_model.ts";
import { REWARDS } from "./table.ts";

const { characters_in_place, exact_match, format, gsm8k, judge, length, multiple_choice, remote } =
  REWARDS;

const /** @internal */ rewardConfigSchema = z.discriminatedUnion("name", [
  z.strictObject({
    name: z.literal("characters_in_place").describe(
      "The share of characters in the same place as in the answer.",
    ),
    ...entrySettings,
    ...characters_in_place.config.shape,
  }),
  z.strictObject({
    name: z.literal("exact_match").describe("1 if the completion equals the row's answer, else 0."),
    ...entrySettings,
    ...exact_match.config.shape,
  }),
  z.strictObject({
    name: z.literal("format").describe(
      "1 if the completion has the required tags or matches the pattern, else 0.",
    ),
    ...entrySettings,
    ...format.config.shape,
  }).refine(hasOneForm, "needs either `tags` or `pattern`"),
  z.strictObject({
    name: z.literal("gsm8k").describe(
      "1 if the number after the last #### is the row's answer, else 0.",
    ),
    ...entrySettings,
    ...gsm8k.config.shape,
  }),
  z.strictObject({
    name: z.literal("judge").describe("The score that a language model gives."),
    ...entrySettings,
    ...judge.config.shape,
  }).refine(
    hasOneScale,
    "needs `verdicts`, or `lowest` below `highest`, or none of them",
  ),
  z.strictObject({
    name: z.literal("length").describe("The completion's length, from 0 to 1."),
    ...entrySettings,
    ...length.config.shape,
  }),
  z.strictObject({
    name: z.literal("multiple_choice").describe(
      "1 if the option that the completion chooses is the row's answer, else 0.",
    ),
    ...entrySettings,
    ...multiple_choice.config.shape,
  }),
  z.strictObject({
    name: z.literal("remote").describe("The score that an HTTP server returns."),
    ...entrySettings,
    ...remote.config.shape,
  }),
  CodeConfig.extend(entrySettings),
  MathConfig.extend(entrySettings),
  PythonRewardConfig.extend(entrySettings),
  RewardModelConfig.extend(entrySettings),
]);
/** One entry of `reward:`; the reward's settings are next to its name and weight. */
export type RewardConfig = z.infer<typeof rewardConfigSchema>;
/** Schema of {@linkcode RewardConfig}. */
export const RewardConfig: typeof rewardConfigSchema = rewardConfigSchema;

/** A configured reward, ready to be called or, for `process`, to be sent to the pool. */
export type ScoringFunction = {
  readonly name: string;
  readonly weight: number;
  /** Paid only to samples for which the named reward is above 0; absent: to every sample. */
  readonly when?: string;
  /** The sources to whose rows it applies; absent: to all rows. */
  readonly sources?: readonly string[];
  /** The limits of its score in the sum; absent: none. */
  readonly clip?: readonly [number, number];
  readonly runs_on: "engine" | "process";
  /** For `process`: `path.py:function`, else null. */
  readonly source: string | null;
  /** With `source`: what its processes may use. */
  readonly process?: RewardProcess;
  /** With `source`: how it is called; absent: as its signature says. */
  readonly style?: RewardStyle;
  /** With `source`: it makes the function, from these settings. */
  readonly settings?: Record<string, unknown>;
  /** For `process` in place of a function: the reward model to ask. */
  readonly model?: RewardModelSettings;
  readonly timeout_ms: number;
  /**
   * Its results are kept, by this hash of what it computes; null: the reward worker says it.
   * Absent: they are not.
   */
  readonly kept?: { code: string | null };
  score(
    sample: Omit<RewardInput, "row"> & { row: Record<string, unknown>; answer: string | undefined },
  ): Promise<Score>;
};

const FRAMEWORKS = RewardStyle.options.filter((style) => style !== "holdfast");
const ENGINE_TIMEOUT_MS = 10_000;

export function labelOf(config: RewardConfig): string {
  if (config.label !== undefined) return config.label;
  return config.name === "python"
    ? parsePythonReward(config.source)!.function.toLowerCase()
    : config.name;
}

/**
 * The functions of a resolved `reward:` list, in its order.
 * @throws {RangeError} If one depends on a reward that is not in the list.
 */
export function scoringFunctions(configs: readonly RewardConfig[]): ScoringFunction[] {
  const labels = configs.map(labelOf);
  return configs.map((config) => {
    if (config.when !== undefined && !labels.includes(config.when)) {
      throw new RangeError(
        `Cannot pay '${labelOf(config)}' because its \`when\` names no reward: the list has ${
          labels.join(", ")
        }, not '${config.when}'`,
      );
    }
    if (isImported(config)) {
      return inProcess(config, functionOf(config));
    }
    if (config.name === "reward_model") return inProcess(config, { model: ownSettings(config) });
    const own = ownSettings(config);
    // The union pairs each name with its own settings; TypeScript cannot follow that through the
    // table.
    const reward = REWARDS[config.name] as unknown as {
      score(input: RewardInput, config: unknown): Score | Promise<Score>;
    };
    return {
      ...combined(config),
      runs_on: "engine",
      source: null,
      timeout_ms: ENGINE_TIMEOUT_MS,
      score: async ({ row, answer, ...sample }) =>
        checkedScore(
          await reward.score({ ...sample, row: { ...row, answer } }, own),
          labelOf(config),
        ),
    };
  });
}

/** A function that the reward worker imports, and what its processes may use. */
type ImportedFunction =
  & Required<Pick<ScoringFunction, "timeout_ms" | "process">>
  & { source: string; style?: RewardStyle; settings?: Record<string, unknown> };
/** @internal */
type ImportedReward = Extract<RewardConfig, { name: "python" | "math" | "code" }>;

/** Whether the reward worker imports a function for this entry. */
export function isImported(config: RewardConfig): config is ImportedReward {
  return config.name === "python" || config.name === "math" || config.name === "code";
}

/** The grader limits its programs itself. */
const CODE_PROCESS = { memory_gib: null, cpu_s: null, file_mib: null, processes_max: 1024 };

/** The function in Python behind an entry: the user's, or a grader that ships. */
export function functionOf(config: ImportedReward): ImportedFunction {
  const { timeout_ms } = config;
  if (config.name === "code") {
    return {
      source: CODE_SOURCE,
      timeout_ms: codeCallTimeout(config),
      process: processOf(CODE_PROCESS),
      style: "holdfast",
      settings: codeSettings(config),
    };
  }
  if (config.name === "math") {
    return { source: MATH_SOURCE, timeout_ms, process: processOf({}), style: "holdfast" };
  }
  const { source, style } = config;
  return { source, timeout_ms, process: processOf(config), ...(style && { style }) };
}

/**
 * Says what a row lacks for a reward; null: it can be scored. `needs`: the columns that a function
 * in Python takes by name, called by the conventions of `style`.
 */
export function rowCheck(
  config: RewardConfig,
  { needs = [], style }: { needs?: readonly string[]; style?: RewardStyle } = {},
): (row: { answer?: string; columns: Record<string, unknown> }) => string | null {
  if (config.name === "reward_model") return () => null;
  if (config.name === "python") {
    const wanted = [...new Set([...config.needs ?? [], ...needs])];
    return ({ answer, columns }) => {
      const all: Record<string, unknown> = { ...columns, answer };
      const lacking = wanted.find((name) => all[name] === undefined || all[name] === null);
      if (lacking === undefined) return null;
      // Its parameters may be those of a framework, under names that were not recognised.
      const hint = style === "holdfast" && needs.includes(lacking)
        ? `, and its signature is none of ${FRAMEWORKS.join(", ")}, which \`style\` may name`
        : "";
      return `Cannot score with '${config.source}' because the row has no '${lacking}'${hint}`;
    };
  }
  if (config.name === "math") {
    return ({ answer }) =>
      answer === undefined ? "Cannot score with math because the row has no answer" : null;
  }
  if (config.name === "code") return (row) => lacksCases(row, config);
  const own = ownSettings(config);
  const reward = REWARDS[config.name] as { check?(row: RewardRow, config: unknown): void };
  return ({ answer, columns }) => {
    try {
      reward.check?.({ ...columns, answer }, own);
      return null;
    } catch (error) {
      if (error instanceof RangeError) return error.message;
      throw error;
    }
  };
}

/** How an entry's score becomes part of the sum. */
function combined(
  config: RewardConfig,
): Pick<ScoringFunction, "name" | "weight" | "when" | "sources" | "clip" | "kept"> {
  const { weight, when, clip } = config;
  const sources = sourcesOf(config);
  return {
    name: labelOf(config),
    weight,
    ...(when !== undefined && { when }),
    ...(sources !== undefined && { sources }),
    ...(clip !== undefined && { clip }),
    ...keptBy(config),
  };
}

/** A reward that the reward worker computes. */
function inProcess(
  config: RewardConfig,
  how: Partial<
    Pick<ScoringFunction, "source" | "timeout_ms" | "process" | "style" | "settings" | "model">
  >,
): ScoringFunction {
  const sum = combined(config);
  return {
    ...sum,
    runs_on: "process",
    source: null,
    timeout_ms: ENGINE_TIMEOUT_MS,
    ...how,
    score() {
      throw new TypeError(
        `Cannot score with '${sum.name}' in the engine because it is Python: send it to the ` +
          "reward processes",
      );
    },
  };
}

/** @throws {RangeError} If a score, or a number returned with it, is not finite. */
export function checkedScore(score: Score, name: string): Score {
  if (score === null) return null;
  const numbers = typeof score === "object" ? { ...score.metrics, score: score.score } : { score };
  for (const [of, value] of Object.entries(numbers)) {
    if (Number.isFinite(value)) continue;
    const what = of === "score" ? "a score" : `'${of}'`;
    throw new RangeError(
      `Cannot use ${what} of '${name}' because it is not a finite number: it is ${value}`,
    );
  }
  return score;
}
