import { z } from "zod";
import { kind, type RewardStyle, rowAnswer } from "../../data/mod.ts";
import type {
  Called,
  ImportedFunction,
  ProcessReward,
  Reward,
  RewardInput,
  Score,
  Unready,
} from "../define.ts";
import { entrySettings, ownSettings, sourcesOf } from "./entry_settings.ts";
import { keptBy } from "./kept_by.ts";
import type { RewardModelSettings } from "../model_settings.ts";
import { REWARDS } from "../table.ts";

/** @internal */
type Named = typeof REWARDS;
/** @internal */
type EntrySchema = {
  [Name in keyof Named]: Named[Name]["config"] extends z.ZodObject<infer Shape>
    ? z.ZodObject<{ name: z.ZodLiteral<Name> } & typeof entrySettings & Shape, z.core.$strict>
    : never;
}[keyof Named];

const /** @internal */ rewardConfigSchema: z.ZodDiscriminatedUnion<EntrySchema[], "name"> = z
  .discriminatedUnion(
    "name",
    // TypeScript cannot follow through the table that each name has its own settings.
    Object.values(REWARDS).map(entrySchema) as unknown as [EntrySchema, ...EntrySchema[]],
  );
/** One entry of `reward:`; the reward's settings are next to its name and weight. */
export type RewardConfig = z.infer<EntrySchema>;
/** Schema of {@linkcode RewardConfig}. */
export const RewardConfig: typeof rewardConfigSchema = rewardConfigSchema;

/** An entry's name, what every entry may say, and the reward's own settings and conditions. */
function entrySchema({ name, about, config }: Named[keyof Named]): z.ZodObject {
  const fields = { name: z.literal(name).describe(about), ...entrySettings, ...config.shape };
  return z.strictObject(fields).check(...(config.def.checks ?? []) as z.core.$ZodCheck<object>[]);
}

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
  readonly process?: ImportedFunction["process"];
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
  ): Score | Promise<Score>;
};

const ENGINE_TIMEOUT_MS = 10_000;

/** What the reward of an entry declares, and its own settings. */
export function declared(
  config: RewardConfig,
): { reward: Reward | ProcessReward; settings: never } {
  // As above: the settings are those of this reward.
  return {
    reward: REWARDS[config.name] as unknown as Reward | ProcessReward,
    settings: ownSettings(config) as never,
  };
}

export function labelOf(config: RewardConfig): string {
  if (config.label !== undefined) return config.label;
  const { reward, settings } = declared(config);
  return reward.label?.(settings) ?? reward.name;
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
    const { reward, settings } = declared(config);
    const sum = combined(config);
    const common = { ...sum, runs_on: reward.runs_on, timeout_ms: ENGINE_TIMEOUT_MS, source: null };
    if (reward.runs_on === "process") {
      return { ...common, ...reward.asks(settings), score: () => refuseHere(sum.name) };
    }
    return {
      ...common,
      score: async ({ row, answer, ...sample }) =>
        checkedScore(
          await reward.score({ ...sample, row: { ...row, answer } }, settings),
          sum.name,
        ),
    };
  });
}

/** The function in Python behind an entry: the user's, or a grader that ships; null: it has none. */
export function functionOf(config: RewardConfig): ImportedFunction | null {
  const { reward, settings } = declared(config);
  const call = reward.runs_on === "process" ? reward.asks(settings) : null;
  return call !== null && "source" in call ? call : null;
}

/** Why an entry's reward cannot be asked at all; null: it can be. */
export async function unready(config: RewardConfig): Promise<Unready | null> {
  const { reward, settings } = declared(config);
  return await reward.unready?.(settings) ?? null;
}

/**
 * Says what a row lacks for a reward; null: it can be scored. `called`: what is known of a function
 * in Python.
 */
export function rowCheck(
  config: RewardConfig,
  called: Called = {},
): (row: { answer?: string; columns: Record<string, unknown> }) => string | null {
  const { reward, settings } = declared(config);
  const isFunction = config.name === "python"; // It may read an answer that is no text.
  return ({ answer, columns }) => {
    try {
      const known = isFunction && answer === undefined ? {} : { answer };
      reward.check?.({ ...columns, ...known }, settings, called);
      return null;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
      const found = answer ?? rowAnswer(columns);
      if (typeof found !== "object" || isFunction) return error.message;
      return `${error.message}. What it has as its answer is ${
        kind(found)
      }, which only a function ` +
        "can grade, such as `my.py:compute_score`; a shipped reward needs text";
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
    when,
    sources,
    clip,
    ...keptBy(config),
  };
}

function refuseHere(name: string): never {
  throw new TypeError(
    `Cannot score with '${name}' in the engine because it is Python: send it to the reward ` +
      "processes",
  );
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
