/** Several evaluation files are several results: the rows and the name of each. */
import { type SourceConfig, sourceLabel } from "../data/mod.ts";
import type { EvaluationSetConfig, PairSetConfig } from "./evaluation_set_config.ts";
import type { Issue } from "./problems/issue_text.ts";

/** How evaluations are divided. Without `evaluate` nothing is evaluated. */
export type Evaluated = {
  data?: { eval?: SourceConfig[] };
  evaluate?: { files: EvaluatedFiles; sets?: SetSettings[] } | null;
};
type SetSettings =
  & Pick<EvaluationSetConfig, "name" | "data">
  & Partial<EvaluationSetConfig>
  & Partial<PairSetConfig>;
type EvaluatedFiles = "apart" | "together";

/**
 * Rows with a separate result. `name`: what its results are called; null: it is the only one of
 * `data.eval`. `split`: where its rows are. `path`: where the configuration has it. `settings`: what
 * it says itself, if it is one of `evaluate.sets`.
 */
export type EvaluationSet = {
  name: string | null;
  split: string;
  sources: SourceConfig[];
  path: (string | number)[];
  settings?: SetSettings;
};

/**
 * The sets that a configuration evaluates on: one for each file of `data.eval`, or one of all of
 * them, and those of `evaluate.sets`.
 */
export function evaluationSets({ data, evaluate }: Evaluated): EvaluationSet[] {
  const sources = data?.eval ?? [];
  const sets = (evaluate?.sets ?? []).map((set, i): EvaluationSet => {
    const { name, data: sources } = set;
    return { name, split: `eval/${name}`, sources, path: ["evaluate", "sets", i], settings: set };
  });
  if (sources.length === 0 && sets.length > 0) return sets;
  if (sources.length < 2 || evaluate?.files !== "apart") {
    return [{ name: null, split: "eval", sources, path: ["data", "eval"] }, ...sets];
  }
  const files = sources.map((source, i): EvaluationSet => {
    const name = setName(source);
    return { name, split: `eval/${name}`, sources: [source], path: ["data", "eval", i] };
  });
  return [...files, ...sets];
}

/**
 * Prefix of the metrics that a set has in every round: `eval/math`. A single file has its name only
 * if the configuration gives it one.
 */
export function metricsPrefix({ name, sources }: Pick<EvaluationSet, "name" | "sources">): string {
  const setName = name ?? (sources.length === 1 ? sources[0]!.name : undefined);
  return setName === undefined ? "eval" : `eval/${setName}`;
}

/** One way of sampling a set. `metrics`: prefix of its metrics in every round. */
type EvaluationPass = {
  label: "greedy" | "sampled";
  samples_per_prompt: number;
  metrics: string;
};

/**
 * Greedy, sampled or both. The greedy pass has a separate prefix only beside a sampled one:
 * `eval/math/greedy/avg_at_1`.
 */
export function evaluationPasses(
  evaluate: { greedy?: boolean; samples_per_prompt?: number },
  set: EvaluationSet,
): EvaluationPass[] {
  const greedy = set.settings?.greedy ?? evaluate.greedy ?? true;
  const samples = set.settings?.samples_per_prompt ?? evaluate.samples_per_prompt ?? 1;
  const sampled = samples > 1 || !greedy;
  const metrics = metricsPrefix(set);
  const greedyMetrics = sampled ? `${metrics}/greedy` : metrics;
  return [
    ...(greedy
      ? [{ label: "greedy" as const, samples_per_prompt: 1, metrics: greedyMetrics }]
      : []),
    ...(sampled ? [{ label: "sampled" as const, samples_per_prompt: samples, metrics }] : []),
  ];
}

/** The name of a set's evaluation; an only set keeps the name that it always had. */
export function evaluationName(set: string | null, label: string): string {
  return set === null ? label : `${set}/${label}`;
}

const naturally = new Intl.Collator("en", { numeric: true });

/**
 * Sorts evaluations as people read them: by phase (before training, between, after), round and set.
 * Sets are evaluated side by side, so the order in which they end differs between two equal runs.
 */
export function byEvaluationName(a: string, b: string): number {
  const [x, y] = [partsOf(a), partsOf(b)];
  return x.phase - y.phase || naturally.compare(x.moment, y.moment) ||
    naturally.compare(x.set, y.set) || naturally.compare(x.label, y.label);
}

/** The parts of a name such as `math/round_2_greedy`. */
function partsOf(name: string) {
  const slash = name.lastIndexOf("/");
  const label = name.slice(slash + 1);
  const moment = label.replace(/_(greedy|sampled|loss)$/, "");
  const phase = moment === "before" ? 0 : moment === "after" ? 2 : 1;
  return { set: name.slice(0, Math.max(slash, 0)), label, moment, phase };
}

function setName({ name, path }: SourceConfig): string {
  return name ?? sourceLabel(path);
}

/** A rule: names of sets are parts of metrics' names and must differ. */
export function setsHaveNames(blocks: Evaluated): Issue[] {
  const seen = new Map<string, string>();
  return evaluationSets(blocks).flatMap(({ name, path, settings, sources: [source] }): Issue[] => {
    if (name === null) return [];
    const at = settings || source!.name !== undefined ? [...path, "name"] : path;
    const together = settings
      ? ""
      : ", or set evaluate.files: together for one result of all files";
    const issue = (why: string, fix: string) => ({
      path: at,
      message: `its results would be called ${JSON.stringify(name)}${why}; give it ${fix}` +
        together,
    });
    if (/[/\p{C}]/u.test(name)) return [issue("", "a `name` of printable characters without '/'")];
    const first = seen.get(name);
    seen.set(name, first ?? source!.path);
    return first === undefined ? [] : [issue(`, as those of ${first} are`, "another `name`")];
  });
}
