import type { Draws } from "./stages/sample_until_full.ts";

/**
 * The ledger: what happened to every draw. read = trained + filtered(reason) + stale +
 * failed(reason) + pending. Stages count with `ctx.tally`; the engine adds up a round's counts and
 * checks them when it closes.
 */
export type Ledger = {
  read: number;
  trained: number;
  filtered: Record<string, number>;
  stale: number;
  failed: Record<string, number>;
  pending: number;
};

/**
 * Reads the engine's totals as a ledger. Draws that were read and are in no other state yet are
 * pending.
 */
export function ledgerOf(tally: Record<string, number>): Ledger {
  const reasons = (prefix: string) =>
    Object.fromEntries(
      Object.entries(tally).filter(([name]) => name.startsWith(`${prefix}.`))
        .map(([name, n]): [string, number] => [name.slice(prefix.length + 1), n])
        .toSorted(([a], [b]) => (a < b ? -1 : 1)),
    );
  const sum = (counts: Record<string, number>) =>
    Object.values(counts).reduce((total, n) => total + n, 0);
  const [filtered, failed] = [reasons("filtered"), reasons("failed")];
  const [read, trained, stale] = [tally.read ?? 0, tally.trained ?? 0, tally.stale ?? 0];
  return {
    read,
    trained,
    filtered,
    stale,
    failed,
    pending: read - trained - stale - sum(filtered) - sum(failed),
  };
}

/** Why none of the draws was trained on; null: some were, or none was read. */
export function untrainedText(tally: Record<string, number>): string | null {
  const { read, trained, filtered, failed } = ledgerOf(tally);
  if (read === 0 || trained > 0) return null;
  const reasons = Object.entries({ ...filtered, ...failed }).map(([reason, n]) => `${reason} ${n}`);
  const where = filtered.truncated ? " in a completion that is not masked" : "";
  return `no step was taken because none of ${read} groups had an advantage${where} (${
    reasons.join(", ") || "all pending"
  })`;
}

/** @internal */
type Closing = { tally: Record<string, number>; round: number; carried: object };

/**
 * The loop's audit: no draw may be in two states, and when a round closes, none may be left except
 * those that it passes to the next round.
 */
export function checkLedger({ tally, round, carried }: Closing): string | null {
  const ledger = ledgerOf(tally);
  const handed_on = (carried as { draws?: Draws }).draws?.pending ?? 0;
  if (ledger.pending === handed_on) return null;
  return `round ${round} closed with ${ledger.pending - handed_on} draws unaccounted for: ${
    JSON.stringify(ledger)
  }`;
}
