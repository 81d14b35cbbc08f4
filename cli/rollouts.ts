import { decodeSlab, type GroupRef } from "../data/mod.ts";
import { InvalidInputError, type JournalRow, type ReadQuery } from "../engine/mod.ts";
import { type Home, readTakenOver, ScoredGroup } from "../flows/mod.ts";
import { print, printJson } from "./output.ts";
import { findRun, newestRun } from "./runs.ts";

export type RolloutOptions = { round?: number; worst?: number; best?: number; limit: number };

/** One sample with its rewards. */
export type Rollout = {
  round: number;
  draw: number;
  sample: number;
  reward: number | null;
  parts: Record<string, number>;
  stop: string;
  tokens: number;
  policy: string;
  prompt: string;
  completion: string;
  failed: string | null;
};

/** Keys of a round's scored groups; with dynamic sampling they lie below the stage that draws until the round is full. */
const SCORED = /(^|\/)round\/\d+\/(sample_until_full\/)?score_group/;

/** `rollouts RUN`: what was sampled in a round, with its rewards. */
export async function listRollouts(
  home: Home,
  id: string | undefined,
  { json, ...options }: RolloutOptions & { json?: boolean },
): Promise<void> {
  const chosen = await readRollouts(home, id, options);
  if (json) return printJson(chosen);
  for (const sample of chosen) print(describe(sample));
}

/** Samples of one round (the newest, if none is named) of a run (the newest, if none is named). */
export async function readRollouts(home: Home, id: string | undefined, options: RolloutOptions): Promise<Rollout[]> {
  const head = await findRun(home, id ?? await newestRun(home));
  const query: ReadQuery = { kinds: ["result"] };
  const results = [...await readTakenOver(home.store, head, query), ...await home.store.read(head.id, query)];
  const scored = results.filter((row) => SCORED.test(row.key));
  if (scored.length === 0) {
    throw new InvalidInputError(`Cannot show rollouts of '${head.id}' as none is scored yet`, {});
  }
  const roundOf = (row: JournalRow) => Number(/round\/(\d+)\//.exec(row.key)![1]);
  const round = options.round ?? Math.max(...scored.map(roundOf));
  const samples: Rollout[] = [];
  for (const row of scored.filter((row) => roundOf(row) === round)) samples.push(...await samplesOf(home, row, round));
  if (samples.length === 0) {
    throw new InvalidInputError(`Cannot show round ${round} of '${head.id}' as it has no scored groups`, { round });
  }
  return choose(samples, options);
}

function choose(samples: Rollout[], { worst, best, limit }: RolloutOptions): Rollout[] {
  const byReward = samples.toSorted((a, b) => (a.reward ?? -Infinity) - (b.reward ?? -Infinity));
  if (worst !== undefined) return byReward.slice(0, worst);
  if (best !== undefined) return byReward.toReversed().slice(0, best);
  return samples.slice(0, limit);
}

async function samplesOf(home: Home, row: JournalRow, round: number): Promise<Rollout[]> {
  const { output } = JSON.parse(row.value) as { output: unknown };
  const group = ScoredGroup.parse(output);
  const ref: GroupRef = group.group;
  const slab = decodeSlab(await home.artifacts.get(ref.slab));
  const made = slab.groups[ref.index]!;
  return ref.samples.map((place, i) => {
    const trajectory = made.trajectories[place]!;
    return {
      round,
      draw: ref.draw,
      sample: place,
      reward: group.rewards[i] ?? null,
      parts: Object.fromEntries(Object.entries(group.parts).map(([name, scores]) => [name, scores[i]!])),
      stop: trajectory.stop,
      tokens: group.lengths[i] ?? 0,
      policy: slab.version,
      prompt: made.prompt_text,
      completion: trajectory.text,
      failed: group.failed,
    };
  });
}

function describe(sample: Rollout): string {
  const parts = Object.entries(sample.parts).map(([name, score]) => `${name} ${score}`).join(", ");
  return [
    `round ${sample.round} draw ${sample.draw} sample ${sample.sample}: reward ${
      sample.reward ?? sample.failed
    } (${parts}), ` +
    `${sample.tokens} tokens, ${sample.stop}, policy ${sample.policy.slice(0, 12)}`,
    `  prompt      ${JSON.stringify(sample.prompt)}`,
    `  completion  ${JSON.stringify(sample.completion)}`,
  ].join("\n");
}
