/** How a batch is split into optimizer steps, and the order of these. */
import type { Context } from "../../engine/mod.ts";

/**
 * The optimizer steps over n groups, rows or pairs: every epoch has all of them, the first epoch in
 * their order.
 */
export function updatesOf(
  n: number,
  { updates, epochs }: { updates: number; epochs: number },
  ctx: Pick<Context, "random">,
): number[][] {
  return Array.from({ length: epochs }, (_, epoch) => {
    const order = epoch === 0
      ? Array.from({ length: n }, (_, i) => i)
      : shuffled(n, ctx.random(`epoch/${epoch + 1}`));
    return splitEvenly(n, updates).map((run) => run.map((place) => order[place]!));
  }).flat();
}

/** 0..n-1 in an order determined by the stream (Fisher and Yates). */
function shuffled(n: number, random: () => number): number[] {
  const order = Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}

/**
 * Indices 0..n-1 split into `parts` runs whose lengths differ by at most one; empty runs are
 * omitted.
 */
export function splitEvenly(n: number, parts: number): number[][] {
  const cut = (i: number) => Math.floor((i * n) / parts);
  return Array.from(
    { length: parts },
    (_, i) => Array.from({ length: cut(i + 1) - cut(i) }, (_, j) => cut(i) + j),
  )
    .filter((run) => run.length > 0);
}
