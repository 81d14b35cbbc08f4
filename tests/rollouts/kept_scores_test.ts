import { deepStrictEqual, notDeepStrictEqual, strictEqual } from "node:assert/strict";
import { type KeptScore, type KeptScores, RewardScorer, scoreKeys } from "../../rollouts/mod.ts";
import type { Operator } from "../../workers/mod.ts";
import { scoredItem } from "../flows/fixtures.ts";
import { group, options, there } from "./scored_group.ts";

/** In memory. */
class Kept extends Map<string, KeptScore> implements KeptScores {
  find(keys: readonly string[]) {
    return keys.map((key) => this.get(key) ?? null);
  }

  keep(results: readonly (readonly [string, KeptScore])[]) {
    for (const [key, result] of results) this.set(key, result);
  }
}

type PoolAnswers = { unit?: "sample" | "group"; code?: string; loaded?: string };

/** Scores a completion by its length; `none` and `bad` have no score. */
function pool(
  { unit = "sample", code = "c", loaded = code }: PoolAnswers,
  batches: string[][],
): Operator {
  return {
    call(op, args) {
      if (op === "identify") {
        return Promise.resolve({ outputs: [{ code, unit }], blobs: [], generation: 1 });
      }
      const { items } = args as { items: { id: string; completion: string }[] };
      batches.push(items.map(({ completion }) => completion));
      const results = items.map(({ id, completion }) => {
        if (completion === "none") return scoredItem({ id, outcome: "none", code: loaded });
        if (completion === "bad") return scoredItem({ id, outcome: "error", error: "x" });
        const metrics = { letters: completion.length };
        return scoredItem({ id, score: completion.length, metrics, code: loaded });
      });
      return Promise.resolve({ outputs: [{ results }], blobs: [], generation: 1 });
    },
  };
}

/** What two scorers over one store are asked, and what they give. */
async function twice(
  texts: string[],
  again: string[],
  answers: PoolAnswers & { then?: PoolAnswers } = {},
) {
  const [kept, batches] = [new Kept(), [] as string[][]];
  const functions = [{ ...there("f"), kept: { code: null } }];
  const artifacts = { put: () => Promise.reject(new Error("nothing is long here")) };
  const scores = [];
  for (const [completions, how] of [[texts, answers], [again, answers.then ?? answers]] as const) {
    const scorer = new RewardScorer({ pool: pool(how, batches), artifacts, kept });
    scores.push(await scorer.score(group(functions, completions), options));
  }
  return { batches, first: scores[0]!, second: scores[1]!, kept };
}

Deno.test("a result is computed once for each code, row and completion", async () => {
  const { batches, first, second } = await twice(["a", "bb"], ["bb", "ccc", "a"]);
  deepStrictEqual(batches, [["a", "bb"], ["ccc"]]);
  deepStrictEqual(second.map(({ reward, parts }) => [reward, parts]), [
    [2, { f: 2, "f/letters": 2 }],
    [3, { f: 3, "f/letters": 3 }],
    [1, { f: 1, "f/letters": 1 }],
  ]);
  deepStrictEqual(second[2], first[0]);
});

Deno.test("what does not apply is kept, and what failed is asked again", async () => {
  const { batches, second } = await twice(["none", "bad"], ["none", "bad"]);
  deepStrictEqual(batches, [["none", "bad"], ["bad"]]);
  deepStrictEqual(second.map(({ failed }) => failed), ["reward_none", "reward_error"]);
});

Deno.test("a function of a group is asked about the whole group, or not at all", async () => {
  const answers: PoolAnswers = { unit: "group" };
  deepStrictEqual((await twice(["a", "bb"], ["a", "bb"], answers)).batches, [["a", "bb"]]);
  deepStrictEqual((await twice(["a", "bb"], ["a", "ccc"], answers)).batches, [
    ["a", "bb"],
    ["a", "ccc"],
  ]);
});

Deno.test("other code is asked again, and code that changed meanwhile keeps nothing", async () => {
  deepStrictEqual((await twice(["a"], ["a"], { then: { code: "d" } })).batches, [["a"], ["a"]]);
  const { kept, batches } = await twice(["a"], ["a"], { loaded: "edited" });
  deepStrictEqual([kept.size, batches.length], [0, 2]);
});

Deno.test("a reward that is not kept is never asked what it is", async () => {
  const batches: string[][] = [];
  const kept = new Kept();
  const artifacts = { put: () => Promise.reject(new Error("nothing is long here")) };
  const scorer = new RewardScorer({ pool: pool({}, batches), artifacts, kept });
  for (let i = 0; i < 2; i++) await scorer.score(group([there("f")], ["a"]), options);
  deepStrictEqual([batches.length, kept.size], [2, 0]);
});

Deno.test("a score of the engine is kept by its own code, as soon as it is there", async () => {
  let calls = 0;
  const judge = {
    ...there("judge"),
    runs_on: "engine" as const,
    kept: { code: "j" },
    score: () => ++calls,
  };
  const artifacts = { put: () => Promise.reject(new Error("nothing is long here")) };
  const scorer = new RewardScorer({ pool: null, artifacts, kept: new Kept() });
  const before = await scorer.score(group([judge], ["a", "b"]), options);
  deepStrictEqual(await scorer.score(group([judge], ["b", "a"]), options), before.toReversed());
  strictEqual(calls, 2);
});

Deno.test("scoreKeys() differ by code, row, completion and place in a group", () => {
  const key = (code: string, row: unknown, sample: unknown) =>
    scoreKeys({ code, unit: "sample" }, { row, samples: [sample] })[0]!;
  const keys = [key("c", "r", "s"), key("d", "r", "s"), key("c", "q", "s"), key("c", "r", "t")];
  strictEqual(new Set(keys).size, 4);
  const ofGroup = scoreKeys({ code: "c", unit: "group" }, { row: "r", samples: ["s", "s"] });
  strictEqual(new Set([...keys, ...ofGroup]).size, 6);
  notDeepStrictEqual(
    ofGroup,
    scoreKeys({ code: "c", unit: "group" }, { row: "r", samples: ["s", "t"] }),
  );
});
