/** A run whose loop starts after a round, with what another run's round passed on. */
import type { ArtifactStore } from "../files/artifacts.ts";
import { Journal } from "../journal/journal.ts";
import type { RoundRecord } from "../journal/tree.ts";
import { joinKey } from "../graph/keys.ts";
import type { NewRow, Store } from "../stores/store.ts";

/** What the last of the earlier rounds left. */
type EarlierRound = Pick<RoundRecord, "round" | "carried" | "total" | "graph_hash">;

/**
 * The `round` rows with which the loop of a new run continues after `round`. A round that samples
 * with a lag reads further back than the last one: there it finds the same values, as the first
 * rounds of any run do.
 */
export async function startedLoop(
  reading: { store: Store; artifacts: ArtifactStore },
  { run, loop: { name, lag }, earlier }: {
    run: string;
    loop: { name: string; lag: number };
    earlier: EarlierRound;
  },
): Promise<NewRow[]> {
  const journal = new Journal({ ...reading, run, epoch: 0, last_seq: 0, onBroken() {} });
  const first = Math.max(1, earlier.round - lag);
  const rounds = Array.from({ length: earlier.round - first + 1 }, (_, i) => first + i);
  return await Promise.all(rounds.map((round) => {
    const record: RoundRecord = { ...earlier, round, tally: {}, until: false, open_after_seq: 0 };
    return journal.row("round", joinKey(name, String(round)), record);
  }));
}
