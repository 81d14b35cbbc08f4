/** Seconds that `startAndCompute()` takes on the machine on which the gate's limits were set. */
export const REFERENCE_S = 0.45;
const TRIES = 5;

type Options = { work?: () => Promise<void>; now?: () => number };

/**
 * How many times slower this machine is at this moment than the one on which limits were set; at
 * least 1. Machines of one kind differ by a factor of two from day to day.
 */
export async function slowness(
  { work = startAndCompute, now = () => performance.now() }: Options = {},
): Promise<number> {
  let best_ms = Infinity;
  for (let i = 0; i < TRIES; i++) {
    const began = now();
    await work();
    best_ms = Math.min(best_ms, now() - began);
  }
  return Math.max(1, best_ms / 1000 / REFERENCE_S);
}

/** What tests do most: processes that start, and one that computes. */
async function startAndCompute(): Promise<void> {
  const computes = "for (let i = 0, x = 0; i < 6e7; i++) x = (x * 31 + i) | 0";
  for (const program of [...Array(8).fill("0"), computes]) {
    await new Deno.Command(Deno.execPath(), { args: ["eval", program] }).output();
  }
}
