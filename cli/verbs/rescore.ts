import { parseRewards } from "../../configs/mod.ts";
import {
  findRun,
  type Home,
  newestRun,
  questionsOf,
  type Rescored,
  type RescoreOptions,
  rescoreRun,
  type Spread,
} from "../../runs/mod.ts";
import { ARGUMENTS } from "../arguments.ts";
import { EXIT } from "../exit.ts";
import { json, required } from "../options.ts";
import { print, printJson, table, tell } from "../display/output.ts";
import { defineVerb, type VerbOption } from "../verb.ts";
import { placeOfRound } from "./rollouts.ts";

/** A round as the command line names it. */
const round: VerbOption<ReturnType<typeof placeOfRound> | undefined> = {
  takes: "<n>",
  help: "only this round (default: all); LOOP/N: of a named loop",
  read: placeOfRound,
};

/** `rescore RUN --reward ...`: what a run's samples get from other rewards. */
export const rescoreVerb = defineVerb({
  name: "rescore",
  about: "score a run's recorded samples with other rewards, and compare",
  arguments: { "[run]": ARGUMENTS.run },
  options: {
    json,
    reward: required(
      "<reward>",
      "a name, path.py:function, an entry '{ name: ... }' or a list '[...]', as in `reward:`",
    ),
    round,
  },
  async action({ args, flags: { json, reward, round }, globals }) {
    const rewards = parseRewards(reward, Deno.cwd());
    for (const question of questionsOf({ reward: rewards }, {})) {
      tell(`Is this intended? ${question}`);
    }
    const failed = await globals.withHome((home) =>
      rescore(home, args.run, { rewards, ...round, json })
    );
    return failed ? EXIT.failed : EXIT.done;
  },
});

/** Returns whether a sample failed. */
async function rescore(
  home: Home,
  id: string | undefined,
  { json, ...options }: RescoreOptions & { json?: boolean },
): Promise<boolean> {
  const head = await findRun(home, id ?? await newestRun(home));
  const onSetup = ({ text }: { text: string }) => tell(text);
  const found = await rescoreRun(home, head, { ...options, onSetup });
  if (json) printJson(found);
  else printRescored(found);
  return Object.keys(found.failures).some((reason) => reason !== "reward_none");
}

function printRescored({ before, after, parts, ...found }: Rescored): void {
  const rows = [
    ["recorded", ...cells(before)],
    ["now", ...cells(after)],
    ...Object.entries(parts).map(([name, spread]) => [`  ${name}`, ...cells(spread)]),
  ];
  const head = ["reward", "samples", "mean", "std", "least", "25 %", "50 %", "75 %", "greatest"];
  print(table(head, rows));
  for (const [reason, { samples, detail }] of Object.entries(found.failures)) {
    print(`${samples} without a reward: ${reason}${detail === null ? "" : `: ${detail}`}`);
  }
  for (const { loop, round, draw, sample, before, after } of found.most_changed) {
    print(`${loop} ${round} draw ${draw} sample ${sample}: ${shown(before)} -> ${shown(after)}`);
  }
  const { samples, changed, kept, run } = found;
  print(`${changed} of ${samples} samples of ${run} changed, ${kept} results were kept`);
}

function cells({ samples, mean, std, quantiles }: Spread): string[] {
  return [String(samples), ...[mean, std, ...quantiles ?? Array(5).fill(null)].map(shown)];
}

function shown(value: number | null): string {
  return value === null ? "-" : String(Number(value.toFixed(3)));
}
