/** What every entry of `reward:` may say beside its reward's own settings. */
import { z } from "zod";
import { isFromSources, setting, type SettingFacts } from "../../data/mod.ts";

const ADDED: SettingFacts = { numerics: false, fork: "free", resume: "refused" };

/** The least and the greatest value that a number may have. */
export const Clip = z.tuple([z.number(), z.number()]).refine(
  ([low, high]) => low < high,
  "must be [low, high] with low below high",
);

const Names = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]);

/** Running normalisation of a score. */
const Normalise = z.strictObject({
  center: z.boolean().default(true).describe("Whether the running mean is subtracted.")
    .register(setting, ADDED),
  memory: z.number().positive().max(1).default(1).describe(
    "How much earlier rounds count: their weight is multiplied by it every round. 1: all " +
      "scores count alike.",
  ).register(setting, ADDED),
});

/** The settings of every entry. The optional ones are recorded only if they are given. */
export const entrySettings = {
  weight: z.number().default(1).describe(
    "The reward of a sample is the sum of weight x score over the list.",
  ),
  label: z.string().regex(/^[a-z0-9_]+$/, "must be lower case letters, digits and _").optional()
    .describe(
      "The name in metrics (`reward/LABEL/mean`); by default the reward's own.",
    ),
  when: z.string().optional().describe(
    "Paid only to samples for which the named reward is above 0; absent: to every sample.",
  ),
  deterministic: z.boolean().optional().describe(
    "Whether equal samples always have equal scores, so that results are kept and used again. " +
      "Absent: true; of `remote`, false.",
  ).register(setting, ADDED),
  on: z.strictObject({
    source: Names.describe("The `name` of a source of rows, or a list of them.")
      .register(setting, ADDED),
  }).optional().describe(
    "It applies only to rows of these sources; absent: to all rows.",
  ).register(setting, ADDED),
  clip: Clip.optional().describe(
    "[low, high]: a score outside is moved to the nearer end before it is weighted. Absent: no " +
      "limit.",
  ).register(setting, ADDED),
  normalise: Normalise.optional().describe(
    "In training, the score is divided by the standard deviation of all scores of this reward " +
      "so far. Absent: it stays as it is.",
  ).register(setting, ADDED),
};

type Entry = { on?: { source: string | string[] } };

/** The sources to whose rows an entry applies; undefined: to all rows. */
export function sourcesOf({ on }: Entry): readonly string[] | undefined {
  return on && [on.source].flat();
}

/** Whether an entry applies to a row. */
export function appliesToRow(entry: Entry, { row_id }: { row_id: string }): boolean {
  return isFromSources(row_id, sourcesOf(entry));
}

/** The settings of an entry's reward alone. */
export function ownSettings<Entry extends { name: string }>(
  entry: Entry,
): Omit<Entry, "name" | keyof typeof entrySettings> {
  const settings = Object.entries(entry).filter(([key]) =>
    key !== "name" && !(key in entrySettings)
  );
  return Object.fromEntries(settings) as Omit<Entry, "name" | keyof typeof entrySettings>;
}
