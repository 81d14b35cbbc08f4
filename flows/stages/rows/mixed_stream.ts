import { z } from "zod";
import { Mixture } from "../../../configs/mod.ts";
import { type Picks, pickSources, type RecentRewards as Recent } from "../../../data/mod.ts";
import type { RecordingContext } from "../../../engine/mod.ts";
import { drawnAfter, RecentRewards, reportMixture, roundWeights, steered } from "./mix_sources.ts";
import type { OpenedSplit } from "./open_data.ts";
import type { ScoredGroup } from "../score_group.ts";

/** What a round that draws until it is full needs to mix sources. */
export const Mixing = z.strictObject({
  mixture: Mixture,
  drawn: z.array(z.int().nonnegative()),
  recent: RecentRewards.optional(),
});
type From = z.infer<typeof Mixing> & { data: OpenedSplit; round: number; seed: number };

/** The sources of a round's draws, some at a time. It computes the same again in a second run. */
export class MixedStream {
  readonly #from: From;
  readonly #weights: number[];
  readonly #sizes: readonly number[];
  readonly #source_of = new Map<number, number>();
  #drawn: number[];

  private constructor(from: From, { weights, sizes }: Awaited<ReturnType<typeof roundWeights>>) {
    this.#from = from;
    this.#weights = weights;
    this.#sizes = sizes;
    this.#drawn = from.drawn;
  }

  static async open(from: From, ctx: RecordingContext): Promise<MixedStream> {
    return new MixedStream(from, await roundWeights(from, ctx));
  }

  /** The sources of the next draws. */
  next({ from, count }: { from: number; count: number }): Picks {
    const sources = pickSources(this.#weights, { seed: this.#from.seed, from, count });
    const picks = { sources, drawn: this.#drawn };
    for (const [i, source] of sources.entries()) this.#source_of.set(from + i, source);
    this.#drawn = drawnAfter(picks);
    return picks;
  }

  /** Reports the round, and gives what it passes on. `scored`: all groups that it drew. */
  end(scored: readonly ScoredGroup[], ctx: RecordingContext): { drawn: number[]; recent?: Recent } {
    const { mixture, recent } = this.#from;
    const report = { weights: this.#weights, sizes: this.#sizes, after: this.#drawn };
    reportMixture(this.#from, report, ctx);
    if (recent === undefined) return { drawn: this.#drawn };
    const sourceOf = (draw: number) => this.#source_of.get(draw)!;
    return { drawn: this.#drawn, recent: steered({ mixture, recent, scored, sourceOf }) };
  }
}
