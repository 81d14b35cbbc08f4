/** What a loop carries for a mixture of sources, and how a round draws from it. */
import { type Mixture, mixtureOf } from "../configs/mod.ts";
import type { Picks, RecentRewards } from "../data/mod.ts";
import { type GraphBuilder, InvalidInputError, type Ref } from "../engine/mod.ts";
import type { RowsConfig } from "./open_rows.ts";
import { mixSources, steerMixture } from "./stages/rows/mix_sources.ts";
import type { OpenedSplit } from "./stages/rows/open_data.ts";
import type { ScoredGroup } from "./stages/score_group.ts";

/** What a round of a mixture passes to the next; nothing if sources are not mixed. */
export type MixtureCarried = {
  /** Draws of each source so far. */
  drawn?: Ref<number[]>;
  /** The recent mean reward of each source; absent: weights do not follow rewards. */
  recent?: Ref<RecentRewards>;
};

/** What the first round of a mixture starts with. */
export function mixtureCarried(g: GraphBuilder, { data }: RowsConfig): MixtureCarried {
  const mixture = mixtureOf(data);
  if (mixture === null) return {};
  const { sources, curriculum } = mixture;
  return {
    drawn: g.constant(sources.map(() => 0)),
    recent: curriculum ? g.constant<RecentRewards>(sources.map(() => null)) : undefined,
  };
}

/**
 * Refuses weights in a graph that does not mix its sources.
 * @throws {InvalidInputError} Naming what to `pass`: weights would have no effect.
 */
export function refuseWeights({ data }: RowsConfig, pass: string): void {
  if (mixtureOf(data) === null) return;
  throw new InvalidInputError(
    "Cannot draw a round because data.train has weights, and the graph does not mix its " +
      `sources: pass ${pass}`,
  );
}

/** A round's choice of sources. */
export type Mixed = { mixture: Mixture; picks: Ref<Picks>; drawn: Ref<number[]> };

/** @internal */
type MixedFrom = MixtureCarried & { data: Ref<OpenedSplit>; round: Ref<number>; count: number };

/** Chooses the sources of a round's draws; undefined: sources are not mixed. */
export function mixedRound(
  g: GraphBuilder,
  config: RowsConfig & { seed: number },
  { drawn, recent, ...from }: MixedFrom,
): Mixed | undefined {
  const mixture = mixtureOf(config.data);
  if (mixture === null || drawn === undefined) return undefined;
  const { seed } = config;
  const mixed = g.stage(mixSources, {
    ...from,
    seed,
    mixture,
    drawn,
    recent,
  });
  return { mixture, picks: mixed.field("picks"), drawn: mixed.field("drawn") };
}

/** What a round passes on once its groups are scored. `recent`: as the previous round left it. */
export function mixtureAfter(
  g: GraphBuilder,
  mixed: Mixed | undefined,
  { recent, round, scored }: {
    recent?: Ref<RecentRewards>;
    round: Ref<number>;
    scored: Ref<ScoredGroup[]>;
  },
): MixtureCarried {
  if (mixed === undefined) return {};
  const { mixture, picks, drawn } = mixed;
  if (recent === undefined) return { drawn };
  return { drawn, recent: g.stage(steerMixture, { mixture, recent, picks, round, scored }) };
}
