/** Several evaluation files are several results: the rows and the name of each. */
import { basename, extname } from "node:path";
import type { SourceConfig } from "../data/mod.ts";
import type { Issue } from "./issue_text.ts";

/**
 * How evaluations are divided. A recorded block without `files` keeps them together, as before the
 * setting existed.
 */
export type Evaluated = {
  data?: { eval?: SourceConfig[] };
  evaluate?: { files?: EvaluatedFiles } | null;
};
type EvaluatedFiles = "apart" | "together";

/**
 * Rows with a separate result. `name`: what results and metrics call it; null: there is one set.
 * `split`: where its rows are.
 */
export type EvaluationSet = { name: string | null; split: string; sources: SourceConfig[] };

/**
 * The sets that a configuration evaluates on: one for each file of `data.eval`, or one of all of
 * them.
 */
export function evaluationSets({ data, evaluate }: Evaluated): EvaluationSet[] {
  const sources = data?.eval ?? [];
  if (sources.length < 2 || evaluate?.files !== "apart") {
    return [{ name: null, split: "eval", sources }];
  }
  return sources.map((source) => {
    const name = setName(source);
    return { name, split: `eval/${name}`, sources: [source] };
  });
}

/** The name of a set's evaluation; an only set keeps the name that it always had. */
export function evaluationName(set: string | null, label: string): string {
  return set === null ? label : `${set}/${label}`;
}

function setName({ name, path }: SourceConfig): string {
  return name ?? basename(path, extname(path));
}

/** A rule: names of sets are parts of metrics' names and must differ. */
export function setsHaveNames(blocks: Evaluated): Issue[] {
  const sets = evaluationSets(blocks);
  const files = new Map<string, string>();
  return sets.flatMap(({ name, sources: [source] }, i): Issue[] => {
    if (name === null) return [];
    const path = ["data", "eval", i, ...(source!.name === undefined ? [] : ["name"])];
    const issue = (why: string, fix: string) => ({
      path,
      message: `its results would be called ${JSON.stringify(name)}${why}; give it ${fix}, ` +
        "or set evaluate.files: together for one result of all files",
    });
    if (/[/\p{C}]/u.test(name)) return [issue("", "a `name` of printable characters without '/'")];
    const first = files.get(name);
    files.set(name, first ?? source!.path);
    return first === undefined ? [] : [issue(`, as those of ${first} are`, "another `name`")];
  });
}
