import { InvalidInputError } from "../engine/mod.ts";
import { type Home, readRollouts, type Rollout, type RolloutOptions } from "../runs/mod.ts";
import { loopAndRound } from "./loop_and_round.ts";
import { print, printJson } from "./output.ts";

/** As on the command line: `round` may name the loop. */
export type RolloutFlags = Omit<RolloutOptions, "round" | "loop"> & {
  round?: ReturnType<typeof placeOfRound>;
  json?: boolean;
};

/** `rollouts RUN`: what was sampled in a round, with its rewards. */
export async function listRollouts(
  home: Home,
  id: string | undefined,
  { json, ...options }: RolloutOptions & { json?: boolean },
): Promise<void> {
  const chosen = await readRollouts(home, id, options);
  if (json) return printJson(chosen);
  for (const sample of chosen) print(describe(sample));
}

/** `3`, or `sampling/3` of the loop called sampling. */
export function placeOfRound(text: string): { loop?: string; round: number } {
  const place = loopAndRound(text);
  if (place !== null && place.round > 0) return place;
  throw new InvalidInputError(`Cannot use '${text}' for --round: give a whole number of at least 1, or LOOP/N`, {});
}

function describe(sample: Rollout): string {
  const parts = Object.entries(sample.parts).map(([name, score]) => `${name} ${score}`).join(", ");
  return [
    `${sample.loop} ${sample.round} draw ${sample.draw} sample ${sample.sample}: reward ${
      sample.reward ?? sample.failed
    } (${parts}), ` +
    `${sample.tokens} tokens, ${sample.stop}, policy ${sample.policy.slice(0, 12)}`,
    `  prompt      ${JSON.stringify(sample.prompt)}`,
    `  completion  ${JSON.stringify(sample.completion)}`,
  ].join("\n");
}
