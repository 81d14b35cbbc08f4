import { InvalidInputError } from "../../engine/mod.ts";
import { type Home, readRollouts, type Rollout, type RolloutOptions } from "../../runs/mod.ts";
import { loopAndRound } from "../display/loop_and_round.ts";
import { print, printJson } from "../display/output.ts";
import { defineVerb, type VerbOption } from "../verb.ts";
import { ARGUMENTS } from "../arguments.ts";
import { json, whole } from "../options.ts";

/** A round as the command line names it. */
const ROUND: VerbOption<ReturnType<typeof placeOfRound> | undefined> = {
  takes: "<n>",
  help: "the round to show (default: the newest); LOOP/N: of a named loop",
  read: placeOfRound,
};

/** `rollouts [RUN]`: what was sampled in a round, with its rewards. */
export const rolloutsVerb = defineVerb({
  name: "rollouts",
  about: "show sampled completions and their rewards",
  arguments: { "[run]": ARGUMENTS.run },
  options: {
    json,
    round: ROUND,
    worst: whole("<n>", "the samples with the lowest reward"),
    best: whole("<n>", "the samples with the highest reward"),
    limit: whole("<n>", "number of samples", { default: 8 }),
  },
  action: ({ args, flags: { round, ...flags }, globals }) =>
    globals.withHome((home) => listRollouts(home, args.run, { ...flags, ...round })),
});

async function listRollouts(
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
  throw new InvalidInputError(
    `Cannot use '${text}' for --round: give a whole number of at least 1, or LOOP/N`,
    {},
  );
}

function describe(sample: Rollout): string {
  const parts = Object.entries(sample.parts).map(([name, score]) => `${name} ${score ?? "none"}`)
    .join(", ");
  return [
    `${sample.loop} ${sample.round} draw ${sample.draw} sample ${sample.sample}: reward ${
      sample.reward ?? sample.failed
    } (${parts}), ` +
    `${sample.tokens} tokens, ${sample.stop}, policy ${sample.policy.slice(0, 12)}`,
    `  prompt      ${JSON.stringify(sample.prompt)}`,
    `  completion  ${JSON.stringify(sample.completion)}`,
  ].join("\n");
}
