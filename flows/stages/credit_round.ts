/**
 * Converts a round between its recorded form (one artifact per column over whole trajectories) and
 * the form that credit sees.
 */
import type { CreditNeeds, CreditRound } from "../../algs/mod.ts";
import {
  type ArtifactRef,
  type Column,
  decodeColumn,
  encodeColumn,
  type Trajectory,
} from "../../data/mod.ts";
import type { ArtifactStore } from "../../engine/mod.ts";
import { decodedSlab } from "./decoded_slabs.ts";
import type { ScoredGroup } from "./score_group.ts";

/** The round as credit sees it: ragged, in draw order. N sequences. */
export function creditRound(groups: ScoredGroup[]): CreditRound {
  return {
    reward: groups.flatMap((group) => group.rewards), // [N]
    group: groups.flatMap((group, g) => group.rewards.map(() => g)), // [N]
    stop: groups.flatMap((group) => group.stops), // [N]
    length: groups.flatMap((group) => group.lengths), // [N]
  };
}

/** The trajectories of a round's groups, [N], read when first requested. */
export class RoundTokens {
  readonly #groups: readonly ScoredGroup[];
  readonly #artifacts: ArtifactStore;
  #trajectories: Promise<Trajectory[]> | null = null;

  constructor(groups: readonly ScoredGroup[], artifacts: ArtifactStore) {
    this.#groups = groups;
    this.#artifacts = artifacts;
  }

  #read(): Promise<Trajectory[]> {
    return this.#trajectories ??= this.#decode();
  }

  async #decode(): Promise<Trajectory[]> {
    const trajectories: Trajectory[] = [];
    // One after the other, so slabs are read once.
    for (const { group: { slab, index, samples } } of this.#groups) {
      const sampled = (await decodedSlab(slab, this.#artifacts)).groups[index]!.trajectories;
      trajectories.push(...samples.map((sample) => sampled[sample]!));
    }
    return trajectories;
  }

  /**
   * What credit may read from the scored columns: only sampled tokens, and V after a true stop is
   * 0.
   */
  async columns(
    columns: Readonly<Record<string, ArtifactRef>>,
    { stop }: CreditRound,
  ): Promise<Partial<CreditNeeds>> {
    const found: Partial<CreditNeeds> = {};
    for (const name of ["old_logp", "ref_logp", "values"] as const) {
      if (columns[name]) found[name] = await this.#sampled(await this.#column(columns[name]));
    }
    if (columns.bootstrap) {
      const after = await this.#column(columns.bootstrap);
      found.bootstrap = after.map(([value], i) => stop[i] === "stop" ? 0 : value!);
    }
    return found;
  }

  /**
   * What tokens earn beside the reward of their sequence, if an environment or a reward function
   * says it. `functions`: whether those of functions are wanted.
   */
  async rewards({ functions = true } = {}): Promise<number[][] | undefined> {
    const byEnvironment = this.#groups.some(({ token_rewards }) => token_rewards);
    const byFunctions = functions && this.#groups.some(({ token_scores }) => token_scores);
    if (!byEnvironment && !byFunctions) return undefined;
    const scores: (Float32Array | undefined)[] = []; // [N][T]
    for (const { token_scores, group } of this.#groups) {
      const column = byFunctions && token_scores
        ? decodeColumn(await this.#artifacts.get(token_scores))
        : [];
      scores.push(...group.samples.map((_, i) => column[i]));
    }
    return (await this.#read()).map(({ action_mask, token_rewards }, i) => {
      const earned = ofSampled(action_mask, token_rewards);
      const actionScores = ofSampled(action_mask, scores[i]);
      // The sequence's reward, which is there, has their sum already.
      const sum = actionScores.reduce((total, score) => total + score, 0);
      return earned.map((reward, t) =>
        reward + actionScores[t]! - (t === actionScores.length - 1 ? sum : 0)
      );
    });
  }

  /**
   * One number per sequence stays as it is; one per sampled token becomes an artifact over the
   * whole trajectory, 0 elsewhere.
   */
  async toColumn(values: number[] | number[][]): Promise<Column> {
    const perToken = values.filter((value) => Array.isArray(value));
    if (perToken.length === 0) return { kind: "sequence", values: values as number[] };
    const trajectories = await this.#read();
    const rows = perToken.map((row, i) => {
      const sampled = row.values();
      return Float32Array.from(
        trajectories[i]!.action_mask,
        (bit) => bit ? sampled.next().value! : 0,
      );
    });
    return { kind: "token", artifact: await this.#artifacts.put(encodeColumn(rows)) };
  }

  /** A column over whole trajectories, with the sampler's log-probabilities for some groups. */
  async asSampled(
    ref: ArtifactRef,
    isSampled: (group: ScoredGroup) => boolean,
  ): Promise<ArtifactRef> {
    const column = decodeColumn(await this.#artifacts.get(ref));
    const sampled = this.#groups.flatMap((group) =>
      group.group.samples.map(() => isSampled(group))
    );
    const trajectories = await this.#read();
    const rows = column.map((row, i) => sampled[i] ? trajectories[i]!.behaviour_logp : row);
    return await this.#artifacts.put(encodeColumn(rows));
  }

  async #column(ref: ArtifactRef): Promise<number[][]> {
    return decodeColumn(await this.#artifacts.get(ref)).map((row) => [...row]);
  }

  async #sampled(rows: number[][]): Promise<number[][]> {
    const trajectories = await this.#read();
    return rows.map((row, i) => row.filter((_, t) => trajectories[i]!.action_mask[t]));
  }
}

/** The numbers of sampled tokens; that of an observation goes to the sampled token before it. */
function ofSampled(action_mask: Uint8Array, rewards: Float32Array | undefined): number[] {
  const sampledRewards: number[] = [];
  let early = 0;
  for (const [t, bit] of action_mask.entries()) {
    const reward = rewards?.[t] ?? 0;
    if (bit) sampledRewards.push(reward + (sampledRewards.length === 0 ? early : 0));
    else if (sampledRewards.length === 0) early += reward;
    else sampledRewards[sampledRewards.length - 1]! += reward;
  }
  return sampledRewards;
}
