import type { RunHead } from "../../engine/mod.ts";
import type { Home } from "../home/home.ts";
import { ownRollouts } from "../read_rollouts.ts";

type SampleQuery = { loop: string; round: number; count: number };

/** What a row of a tracker's table has. */
type RoundSample = {
  round: number;
  draw: number;
  sample: number;
  reward: number | null;
  stop: string;
  tokens: number;
  policy: string;
  prompt: string;
  completion: string;
};

/**
 * Completions of a round from the worst to the best, spread evenly over its rewards. None for a
 * round that was inherited or scores nothing.
 */
export async function roundSamples(
  home: Home,
  { id }: Pick<RunHead, "id">,
  { loop, round, count }: SampleQuery,
): Promise<RoundSample[]> {
  const samples = await ownRollouts(home, id, { loop, round });
  const sorted = samples.toSorted((a, b) =>
    (a.reward ?? -Infinity) - (b.reward ?? -Infinity) || a.draw - b.draw || a.sample - b.sample
  );
  const wanted = Math.min(count, sorted.length);
  const at = (i: number) => Math.round(i * (sorted.length - 1) / Math.max(1, wanted - 1));
  return Array.from({ length: wanted }, (_, i) => {
    const { draw, sample, reward, stop, tokens, policy, prompt, completion } = sorted[at(i)]!;
    return { round, draw, sample, reward, stop, tokens, policy, prompt, completion };
  });
}
