import { headOf, titleOf, unpairedOf } from "../../algs/mod.ts";
import type { Issue } from "../problems/issue_text.ts";
import type { Blocks } from "./rule_blocks.ts";

/** Rules of the preference flow: its model and its rows may each come from one of two places. */
export const PREFERENCE_RULES = [
  oneModel,
  dataOrTask,
  teachersHaveWords,
  onlyGoodIsTaught,
  promptsDiffer,
];

function oneModel({ flow, model }: Blocks): Issue[] {
  if ((flow !== "preference" && flow !== "supervised") || !model) return [];
  const sources = [model.path, model.recipe].filter((one) => one !== undefined);
  if (sources.length === 1) return [];
  const message = sources.length === 0
    ? "missing; give the path of a model, or a recipe"
    : "is given together with a recipe; leave one of them out";
  return [{ path: ["model", "path"], message }];
}

function dataOrTask({ flow, data, task }: Blocks): Issue[] {
  if (flow !== "preference" || (data === undefined) !== (task === undefined)) return [];
  if (data === undefined) {
    return [{ path: ["data"], message: "missing; give rows with data.train, or a task" }];
  }
  return [{ path: ["task"], message: "is given together with data; leave one of them out" }];
}

function teachersHaveWords({ flow, warmup, algorithm }: Blocks): Issue[] {
  if (flow !== "preference" || !warmup || !algorithm || headOf(algorithm) === null) return [];
  const message = `${titleOf(algorithm)} trains a model without a vocabulary, which cannot learn ` +
    "completions: use null, " +
    "and start from a model that was";
  return [{ path: ["warmup"], message }];
}

/** A row without a partner may be a bad example; a task's rows are pairs. */
function onlyGoodIsTaught({ warmup, algorithm, data }: Blocks): Issue[] {
  if (!warmup || !data || !algorithm || unpairedOf(algorithm) === null) return [];
  const message = "would also teach completions that are labelled undesirable: use null, and " +
    "start from a model that was fine-tuned on good ones";
  return [{ path: ["warmup"], message }];
}

/** One prompt alone has no completion of a different one. */
function promptsDiffer({ algorithm, pairs_per_round, evaluate }: Blocks): Issue[] {
  if (!algorithm || !unpairedOf(algorithm)?.mismatched) return [];
  const counts = [
    { path: ["pairs_per_round"], count: pairs_per_round },
    { path: ["evaluate", "pairs"], count: evaluate?.pairs },
    ...(evaluate?.sets ?? []).map(({ pairs }, i) => ({
      path: ["evaluate", "sets", i, "pairs"],
      count: pairs,
    })),
  ];
  const message = `is 1; ${titleOf(algorithm)} estimates the KL with completions of different ` +
    "prompts: at least 2";
  return counts.flatMap(({ path, count }) => count === 1 ? [{ path, message }] : []);
}
