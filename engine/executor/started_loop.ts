/** A run whose loop starts after a round, with what another run's round passed on. */
import type { ArtifactStore } from "../files/artifacts.ts";
import { Journal } from "../journal/journal.ts";
import type { RoundRecord } from "../journal/tree.ts";
import { joinKey } from "../graph/keys.ts";
import type { NewRow, Store } from "../stores/store.ts";

/** What the last of the earlier rounds left. */
type Left = Pick<RoundRecord, "round" | "carried" | "total" | "graph_hash">;

/**
 * The `round` rows with which the loop of a new run continues after `round`. A round that samples
 * with a lag reads further back than the last one: there it finds the same values, as the first
 * rounds of any run do.
 */
export async function startedLoop(
  reading: { store: Store; artifacts: ArtifactStore },
  { run, loop: { name, lag }, left }: {
    run: string;
    loop: { name: string; lag: number };
    left: Left;
  },
): Promise<NewRow[]> {
  const journal = new Journal({ ...reading, run, epoch: 0, last_seq: 0, onBroken() {} });
  const first = Math.max(1, left.round - lag);
  const rounds = Array.from({ length: left.round - first + 1 }, (_, i) => first + i);
  return await Promise.all(rounds.map((round) => {
    const record: RoundRecord = { ...left, round, tally: {}, until: false, open_after_seq: 0 };
    return journal.row("round", joinKey(name, String(round)), record);
  }));
}
