import { labelOf } from "../../rewards/mod.ts";
import { inPython, readsParts, refillOf, titleOf } from "../../algs/mod.ts";
import type { Issue } from "../problems/issue_text.ts";
import { sourcesHaveRewards } from "./reward_source_rules.ts";
import type { Blocks } from "./rule_blocks.ts";
import { didYouMean } from "../problems/suggest.ts";

/** Rules between the entries of `reward:`. */
export const REWARD_RULES = [
  rewardsDiffer,
  conditionsHold,
  sourcesHaveRewards,
  filterIsRead,
  sumIsRead,
];

function rewardsDiffer({ reward }: Blocks): Issue[] {
  if (reward === undefined || reward.length === 0) return [];
  const labels = reward.map(labelOf);
  const twice = labels.flatMap((label, i) =>
    labels.indexOf(label) === i ? [] : [{
      path: ["reward", i],
      message: `a second reward called '${label}'; give it a different label`,
    }]
  );
  if (reward.some(({ weight }) => weight !== 0)) return twice;
  return [...twice, {
    path: ["reward"],
    message: "every weight is 0, so every reward is 0; change at least one weight",
  }];
}

/** `when` names a different entry, and conditions form no cycle. */
function conditionsHold({ reward = [] }: Blocks): Issue[] {
  const labels = reward.map(labelOf);
  const conditions = new Map(reward.map((entry, i) => [labels[i]!, entry.when]));
  return reward.flatMap((entry, i): Issue[] => {
    if (entry.when === undefined) return [];
    const path = ["reward", i, "when"];
    if (entry.when === labels[i]) {
      return [{ path, message: "is the reward itself; name a different one" }];
    }
    if (!conditions.has(entry.when)) {
      const message = `there is no reward '${entry.when}' in the list${
        didYouMean(entry.when, labels)
      }`;
      return [{ path, message }];
    }
    const chain = chainFrom(entry.when, conditions);
    if (!chain.includes(labels[i]!)) return [];
    return [{
      path,
      message: `'${
        chain.join("' waits for '")
      }', which is this one; let one of them be paid always`,
    }];
  });
}

/** The names that a condition leads to, each once. */
function chainFrom(first: string, conditions: ReadonlyMap<string, string | undefined>): string[] {
  const chain: string[] = [];
  for (
    let at: string | undefined = first;
    at !== undefined && !chain.includes(at);
    at = conditions.get(at)
  ) {
    chain.push(at);
  }
  return chain;
}

/** A filter needs dynamic sampling, and a reward to read. */
function filterIsRead({ reward = [], reward_shaping, algorithm }: Blocks): Issue[] {
  const filter = reward_shaping?.filter;
  if (filter === undefined) return [];
  const path = ["reward_shaping", "filter"];
  const labels = reward.map(labelOf);
  const [label = ""] = filter.by.split("/");
  const unknown = labels.includes(label) ? [] : [{
    path: [...path, "by"],
    message: `there is no reward '${label}' in the list${didYouMean(label, labels)}`,
  }];
  if (algorithm === undefined || refillOf(algorithm) !== null) return unknown;
  const fix = "refill_batches_max" in algorithm
    ? "set algorithm.refill_batches_max above 0, or remove it"
    : "use an algorithm that replaces groups without a signal, such as dapo, or remove it";
  const message = `${titleOf(algorithm)} trains on every group: ${fix}`;
  return [...unknown, { path, message }];
}

/**
 * An algorithm that reads each reward by itself has no use for what changes their sum. One in
 * Python may read both.
 */
function sumIsRead({ reward = [], reward_shaping, algorithm }: Blocks): Issue[] {
  if (algorithm === undefined || inPython(algorithm) || !readsParts(algorithm)) return [];
  const message =
    `${titleOf(algorithm)} reads each reward by itself, before it is changed: remove ` +
    "it, or use an algorithm that reads the sum, such as grpo";
  const entries = reward.flatMap((entry, i) =>
    (["clip", "normalise"] as const).filter((name) => entry[name] !== undefined)
      .map((name) => ({ path: ["reward", i, name], message }))
  );
  const shaping = (["truncated", "token_cost", "clip"] as const)
    .filter((name) => reward_shaping?.[name] !== undefined)
    .map((name) => ({ path: ["reward_shaping", name], message }));
  return [...entries, ...shaping];
}
