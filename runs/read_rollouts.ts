import { z } from "zod";
import { decodeSlab, type GroupRef } from "../data/mod.ts";
import { InvalidInputError, type JournalRow, type ReadQuery, recordedAs } from "../engine/mod.ts";
import { ScoredGroup } from "../flows/mod.ts";
import { findRun, newestRun } from "./home/find_run.ts";
import type { Home } from "./home/home.ts";
import { readTakenOver } from "./forks/lineage.ts";

/** Which samples of which round. */
export type RolloutOptions = {
  round?: number;
  loop?: string;
  worst?: number;
  best?: number;
  limit: number;
};

/** One sample with its rewards. */
export type Rollout = {
  loop: string;
  round: number;
  draw: number;
  sample: number;
  reward: number | null;
  /** Each reward's score; null: it does not apply to the sample. */
  parts: Record<string, number | null>;
  stop: string;
  tokens: number;
  policy: string;
  prompt: string;
  completion: string;
  failed: string | null;
};

/**
 * Keys of a round's scored groups, in any loop; with dynamic sampling they are below the stage that
 * draws until the round is full.
 */
const SCORED = /(?:^|\/)([^/]+)\/(\d+)\/(?:sample_until_full\/)?score_group/;

type Scored = { loop: string; round: number; row: JournalRow };

/** Samples of one round (default: the newest) of a run (default: the newest). */
export async function readRollouts(
  home: Home,
  id: string | undefined,
  options: RolloutOptions,
): Promise<Rollout[]> {
  const head = await findRun(home, id ?? await newestRun(home));
  const query: ReadQuery = { kinds: ["result"] };
  const results = [
    ...await readTakenOver(home.store, head, query),
    ...await home.store.read(head.id, query),
  ];
  const scored = results.flatMap((row): Scored[] => {
    const [, loop, round] = SCORED.exec(row.key) ?? [];
    return loop === undefined ? [] : [{ loop, round: Number(round), row }];
  });
  const newest = scored.at(-1);
  if (newest === undefined) {
    throw new InvalidInputError(
      `Cannot show rollouts of '${head.id}' because none has been scored yet`,
      {},
    );
  }
  const { loop = newest.loop } = options;
  const { round = Math.max(...scored.filter((one) => one.loop === loop).map((one) => one.round)) } =
    options;
  const samples: Rollout[] = [];
  for (const one of scored) {
    if (one.loop === loop && one.round === round) samples.push(...await samplesOf(home, one));
  }
  if (samples.length > 0) return choose(samples, options);
  const loops = [...new Set(scored.map((one) => one.loop))];
  throw new InvalidInputError(
    `Cannot show ${loop}/${round} of '${head.id}' because it has no scored groups. ` +
      `Loops with scored groups: ${loops.join(", ")}`,
    { loop, round, loops },
  );
}

/** Samples of one round of a run, without those that it inherited. */
export async function ownRollouts(
  home: Home,
  run: string,
  { loop, round }: { loop: string; round: number },
): Promise<Rollout[]> {
  const rows = await home.store.read(run, { kinds: ["result"], prefix: `${loop}/${round}/` });
  const scored = rows.filter(({ key }) => SCORED.test(key));
  const samples = scored.map((row) => samplesOf(home, { loop, round, row }));
  return (await Promise.all(samples)).flat();
}

function choose(samples: Rollout[], { worst, best, limit }: RolloutOptions): Rollout[] {
  const byReward = samples.toSorted((a, b) => (a.reward ?? -Infinity) - (b.reward ?? -Infinity));
  if (worst !== undefined) return byReward.slice(0, worst);
  if (best !== undefined) return byReward.toReversed().slice(0, best);
  return samples.slice(0, limit);
}

const ScoredOutput = z.object({ output: ScoredGroup });

async function samplesOf(home: Home, { loop, round, row }: Scored): Promise<Rollout[]> {
  const group = recordedAs(row, ScoredOutput.parse).output;
  const ref: GroupRef = group.group;
  const slab = decodeSlab(await home.artifacts.get(ref.slab));
  const decoded = slab.groups[ref.index]!;
  return ref.samples.map((place, i) => {
    const trajectory = decoded.trajectories[place]!;
    return {
      loop,
      round,
      draw: ref.draw,
      sample: place,
      reward: group.rewards[i] ?? null,
      parts: Object.fromEntries(
        Object.entries(group.parts).map(([name, scores]) => [name, scores[i]!]),
      ),
      stop: trajectory.stop,
      tokens: group.lengths[i] ?? 0,
      policy: slab.version,
      prompt: decoded.prompt_text,
      completion: trajectory.text,
      failed: group.failed,
    };
  });
}
