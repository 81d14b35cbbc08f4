/** Rules between rewards that are for some sources and the sources of rows. */
import type { SourceConfig } from "../../data/mod.ts";
import { labelOf, type RewardConfig, sourcesOf } from "../../rewards/mod.ts";
import { type EvaluationSet, evaluationSets } from "../evaluation_sets.ts";
import type { Issue } from "../problems/issue_text.ts";
import type { Blocks } from "./rule_blocks.ts";
import { didYouMean } from "../problems/suggest.ts";

/** A list of rewards and the sources whose rows it scores. */
type Scored = { rewards: readonly RewardConfig[]; at: Place; sources: readonly Named[] };
type Place = (string | number)[];
type Named = { path: Place; name: string | undefined };

/** Every reward's `on` names sources, every source is known by a name, and has a reward. */
export function sourcesHaveRewards(blocks: Blocks): Issue[] {
  return listsOf(blocks).flatMap((list) => {
    if (list.rewards.every((reward) => sourcesOf(reward) === undefined)) return [];
    const unnamed = namesLack(list);
    return unnamed.length > 0 ? unnamed : [...unknownNames(list), ...unrewarded(list)];
  });
}

function listsOf({ flow, reward = [], data, evaluate, ...blocks }: Blocks): Scored[] {
  const trains = flow === "online" || flow === "quickstart";
  const { train = [], eval: held = [] } = data ?? {};
  const evaluated = evaluate
    ? evaluationSets({ data: { eval: held }, evaluate } as Parameters<typeof evaluationSets>[0])
    : [];
  const withRewards = evaluated.filter(({ settings }) => settings?.reward);
  const shared = evaluated.filter(({ settings }) => !settings?.reward);
  const sources = [
    ...(trains ? namesOf(train, ["data", "train"]) : []),
    ...shared.flatMap(namesOfSet),
  ];
  // The rows of a task have no source, so no `on` can name it.
  const namedSources = "task" in blocks && blocks.task !== undefined ? [] : sources;
  return [
    { rewards: reward, at: ["reward"], sources: namedSources },
    ...withRewards.map((set): Scored => ({
      rewards: set.settings!.reward as RewardConfig[],
      at: [...set.path, "reward"],
      sources: namesOfSet(set),
    })),
  ];
}

/** A set without its own block is `data.eval`, or one file of it. */
function namesOfSet({ path, sources, settings }: EvaluationSet): Named[] {
  if (settings !== undefined) return namesOf(sources, [...path, "data"]);
  if (path.length === 2) return namesOf(sources, path);
  return [{ path: [...path, "name"], name: sources[0]!.name }];
}

function namesOf(sources: readonly Pick<SourceConfig, "name">[], at: Place): Named[] {
  return sources.map(({ name }, i) => ({ path: [...at, i, "name"], name }));
}

function namesLack({ sources }: Scored): Issue[] {
  return sources.flatMap(({ name, path }): Issue[] => {
    if (name === undefined) {
      const message = "missing, but a reward is for some sources only: give every source a name";
      return [{ path, message }];
    }
    if (!name.includes("/")) return [];
    return [{ path, message: "must have no '/': a reward knows rows by what is before it" }];
  });
}

function unknownNames({ rewards, at, sources }: Scored): Issue[] {
  const known = [...new Set(sources.flatMap(({ name }) => name ?? []))];
  return rewards.flatMap((reward, i): Issue[] =>
    (sourcesOf(reward) ?? []).filter((name) => !known.includes(name)).map((name) => {
      const has = known.length === 0 ? "no source has a name" : `there are ${known.join(", ")}`;
      const message = `no source is called '${name}': ${has}${didYouMean(name, known)}`;
      return { path: [...at, i, "on", "source"], message };
    })
  );
}

function unrewarded({ rewards, at, sources }: Scored): Issue[] {
  const lacking = sources.filter(({ name }) =>
    rewards.every((reward) => {
      const sourceNames = sourcesOf(reward);
      return sourceNames !== undefined && !sourceNames.includes(name!);
    })
  );
  const names = [...new Set(lacking.map(({ name }) => name!))];
  if (names.length === 0) return [];
  const labels = rewards.map(labelOf).join(", ");
  const message = `no reward applies to rows of ${names.join(", ")}: give them one, or let one ` +
    `of ${labels} apply to them`;
  return [{ path: at, message }];
}
