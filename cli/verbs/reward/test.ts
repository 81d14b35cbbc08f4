import { type RewardTest, type RewardTestOptions, tryReward } from "../../../runs/mod.ts";
import { RewardStyle } from "../../../data/mod.ts";
import { BadDataError } from "../../../engine/mod.ts";
import { print, printJson, tell } from "../../display/output.ts";
import { defineVerb, type VerbOption } from "../../verb.ts";
import { EXIT } from "../../exit.ts";
import { json, required, whole } from "../../options.ts";

/** How a function in Python is called, instead of as its signature says. */
const style: VerbOption<RewardStyle | undefined> = {
  takes: "<name>",
  help: "how a Python function is called, if not as its signature says",
  read(text) {
    const named = RewardStyle.options.find((name) => name === text);
    if (named !== undefined) return named;
    throw new BadDataError(
      `Cannot use '${text}' for --style because there is no such style. ` +
        `Fix: give one of ${RewardStyle.options.join(", ")}`,
      { style: text },
    );
  },
};

/**
 * `reward test NAME|path.py:function|DIRECTORY`: scores rows offline and says how long it takes
 * and what fails.
 */
export const rewardTestVerb = defineVerb({
  name: "reward test",
  about: "score rows offline with a reward",
  arguments: {
    "<reward>":
      "a reward's name, its entry '{ name: ... }', path.py:function, or a model's directory",
  },
  options: {
    json,
    data: required(
      "<file>",
      "rows (a path, or hf://datasets/...), or a configuration that has them; scores the completion of each, or else its answer",
    ),
    count: whole("<n>", "number of rows", { short: "-n", default: 8 }),
    style,
    timeout_ms: whole("<ms>", "the reward's `timeout_ms` (default: its own)"),
  },
  async action({ args, flags, globals: { home } }) {
    return await testReward(args.reward, { ...flags, home, say: tell }) ? EXIT.done : EXIT.failed;
  },
});

/** True: nothing failed. */
async function testReward(
  name: string,
  { json, ...options }: RewardTestOptions & { json?: boolean },
): Promise<boolean> {
  const tested = await tryReward(name, options);
  const {
    style,
    leftover,
    results,
    rows,
    failed,
    ungraded,
    failures,
    p50_ms,
    p99_ms,
    metrics,
    scores,
  } = tested;
  if (json) printJson(tested);
  else {
    if (style !== null) {
      const unit = style.unit === "group" ? "all samples of a prompt" : "one sample";
      print(`style ${style.style}, a call scores ${unit}: ${style.why}`);
    }
    for (const one of results) print(describe(one));
    if (leftover !== null) print(`note  ${leftover}`);
    const reasons = Object.entries(failures).map(([reason, n]) => `${reason} ${n}`);
    const why = failed === 0 ? "" : ` (${reasons.join(", ")})`;
    const none = ungraded === 0 ? "" : `, ${ungraded} ungraded`;
    print(
      `${rows} rows, ${failed} failed${why}${none}, p50 ${p50_ms.toFixed(1)} ms, p99 ${
        p99_ms.toFixed(1)
      } ms`,
    );
    for (const [name, mean] of Object.entries(metrics)) {
      if (mean !== 0) print(`mean ${name}: ${mean.toFixed(2)}`);
    }
    for (const [score, n] of Object.entries(scores)) print(`score ${score}: ${"#".repeat(n)} ${n}`);
  }
  return failed === 0;
}

function describe({ row_id, score, error, completion }: RewardTest["results"][number]): string {
  const verdict = error !== null ? "FAILED" : score === null ? "UNGRADED" : String(score);
  const why = error === null ? [] : error.split("\n").map((line) => `  | ${line}`);
  return [`${verdict}  ${row_id}  ${JSON.stringify(completion.slice(0, 60))}`, ...why].join("\n");
}
