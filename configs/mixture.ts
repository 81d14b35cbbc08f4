/** Mixtures of sources: what a configuration says about them, and the rules between its parts. */
import {
  CurriculumConfig,
  sourceLabel,
  type TrainingSource,
  Weight,
  weightAt,
} from "../data/mod.ts";
import { z } from "zod";
import type { Issue } from "./problems/issue_text.ts";
import type { Blocks } from "./rules/rule_blocks.ts";

const /** @internal */ mixtureSchema = z.strictObject({
  sources: z.array(z.strictObject({ name: z.string(), weight: Weight })).min(1),
  curriculum: CurriculumConfig.optional().describe("Absent: weights do not follow rewards."),
});
/** Sources that are mixed by weight, in the order of `data.train`. */
export type Mixture = z.infer<typeof mixtureSchema>;
/** Schema of {@linkcode Mixture}. */
export const Mixture: typeof mixtureSchema = mixtureSchema;

/** The mixture of a `data` block; null: the rows of all sources are shuffled together. */
export function mixtureOf(
  data: { train?: TrainingSource[]; curriculum?: CurriculumConfig | null } | undefined,
): Mixture | null {
  const { train = [], curriculum = null } = data ?? {};
  if (curriculum === null && train.every(({ weight }) => weight === undefined)) return null;
  const sources = train.map(({ name, path, weight }) => ({
    name: name ?? sourceLabel(path), // In metrics and `show`.
    weight: weight ?? 1,
  }));
  return { sources, ...(curriculum && { curriculum }) };
}

/** Rules of mixtures. */
export const MIXTURE_RULES = [isWhole, someSourceCounts, sourcesHaveNames];

function isWhole({ flow, data }: Blocks): Issue[] {
  const { train = [], curriculum = null } = data ?? {};
  const without = train.findIndex(({ weight }) => weight === undefined);
  const issues: Issue[] = [];
  if (without >= 0 && train.some(({ weight }) => weight !== undefined)) {
    const message = "missing, but another source has one: give every source a weight, or none";
    issues.push({ path: ["data", "train", without, "weight"], message });
  }
  if (curriculum !== null && flow !== "online") {
    const message = `the ${flow} flow has no rewards to steer by: use null, and weights by round`;
    issues.push({ path: ["data", "curriculum"], message });
  }
  return issues;
}

/** Between two points weights are linear, so their sum is positive if it is at every point. */
function someSourceCounts({ data }: Blocks): Issue[] {
  const weights = (data?.train ?? []).flatMap(({ weight }) => weight === undefined ? [] : [weight]);
  const issues = weights.flatMap((weight, i): Issue[] =>
    typeof weight !== "number" && weight.some(([round], at) => round <= (weight[at - 1]?.[0] ?? 0))
      ? [{ path: ["data", "train", i, "weight"], message: "its rounds must increase" }]
      : []
  );
  if (issues.length > 0 || weights.length === 0) return issues;
  const points = weights.flatMap((weight) =>
    typeof weight === "number" ? [1] : weight.map(([round]) => round)
  );
  const empty = [...new Set(points)].sort((a, b) => a - b).find((round) =>
    weights.every((weight) => weightAt(weight, round) === 0)
  );
  if (empty === undefined) return [];
  const message = `every source has the weight 0 in round ${empty}: give one of them more`;
  return [{ path: ["data", "train", 0, "weight"], message }];
}

function sourcesHaveNames({ data }: Blocks): Issue[] {
  const { sources = [] } = mixtureOf(data) ?? {};
  return sources.flatMap(({ name }, i): Issue[] => {
    const first = sources.findIndex((one) => one.name === name);
    const path = ["data", "train", i, ...(data!.train![i]!.name === undefined ? [] : ["name"])];
    const why = `its counts would be called ${JSON.stringify(name)}`;
    if (/[^\w.-]/.test(name)) {
      const message = `${why}; give it a \`name\` of letters, digits, '.', '_' and '-'`;
      return [{ path, message }];
    }
    if (first === i) return [];
    return [{ path, message: `${why}, as those of source ${first + 1} are; give it another name` }];
  });
}
