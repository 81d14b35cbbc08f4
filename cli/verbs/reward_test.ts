import { type RewardTest, type RewardTestOptions, tryReward } from "../../runs/mod.ts";
import { print, printJson } from "../output.ts";
import { defineVerb } from "../verb.ts";
import { EXIT } from "../exit.ts";
import { json, required, whole } from "../options.ts";

/**
 * `reward test NAME|path.py:function|DIRECTORY`: scores rows offline and says how long it takes
 * and what fails.
 */
export const rewardTestVerb = defineVerb({
  name: "reward test",
  about: "score rows offline with a reward",
  arguments: {
    "<reward>": "a reward's name, path.py:function, or a reward model's directory",
  },
  options: {
    json,
    data: required("<file>", "JSONL rows; scores the completion of each, or else its answer"),
    count: whole("<n>", "number of rows", { short: "-n", default: 8 }),
    timeout_ms: whole("<ms>", "time limit of one call", { default: 10_000 }),
  },
  async action({ args, flags, globals: { home } }) {
    return await testReward(args.reward, { ...flags, home }) ? EXIT.done : EXIT.failed;
  },
});

/** True: nothing failed. */
async function testReward(
  name: string,
  { json, ...options }: RewardTestOptions & { json?: boolean },
): Promise<boolean> {
  const tested = await tryReward(name, options);
  const { results, rows, failed, ungraded, p50_ms, p99_ms, scores } = tested;
  if (json) printJson(tested);
  else {
    for (const one of results) print(describe(one));
    const none = ungraded === 0 ? "" : `, ${ungraded} ungraded`;
    print(
      `${rows} rows, ${failed} failed${none}, p50 ${p50_ms.toFixed(1)} ms, p99 ${
        p99_ms.toFixed(1)
      } ms`,
    );
    for (const [score, n] of Object.entries(scores)) print(`score ${score}: ${"#".repeat(n)} ${n}`);
  }
  return failed === 0;
}

function describe({ row_id, score, error, completion }: RewardTest["results"][number]): string {
  const verdict = error !== null ? "FAILED" : score === null ? "UNGRADED" : String(score);
  const why = error === null ? [] : error.split("\n").map((line) => `  | ${line}`);
  return [`${verdict}  ${row_id}  ${JSON.stringify(completion.slice(0, 60))}`, ...why].join("\n");
}
