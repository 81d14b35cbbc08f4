import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import type { Trajectory } from "../../data/mod.ts";
import { RewardScorer } from "../../rollouts/mod.ts";
import { processOf, type ScoringFunction } from "../../rewards/mod.ts";
import type {
  CallOptions,
  Loss,
  Operator,
  Recovery,
  RewardModelSettings,
} from "../../workers/mod.ts";
import { scoredItem } from "../flows/fixtures.ts";

const trajectory = (text: string): Trajectory => ({
  sample: 0,
  tokens: Int32Array.from([1, 2, 3]),
  action_mask: Uint8Array.from([0, 1, 1]),
  behaviour_logp: new Float32Array(3),
  versions: [],
  stop: "stop",
  text,
});

const here = (name: string, score: ScoringFunction["score"], weight = 1): ScoringFunction => ({
  name,
  weight,
  score,
  runs_on: "engine",
  source: null,
  timeout_ms: 1000,
});
const there = (name: string): ScoringFunction => ({
  ...here(name, () => 0),
  runs_on: "process",
  source: "my.py:score",
  process: processOf({}),
});

const group = (functions: ScoringFunction[], texts = ["a", "bb"]) => ({
  functions,
  prompt: "p",
  row: { row_id: "r", prompt: "p", answer: "bb", columns: { extra: 7 } },
  trajectories: texts.map(trajectory),
});
const recoveries: [string, Recovery][] = [];
const options = {
  key: "score_group/x",
  attempt: 1,
  signal: new AbortController().signal,
  record: (_: string, key: string, value: Recovery) =>
    Promise.resolve(void recoveries.push([key, value])),
};

function pool(
  items: Parameters<typeof scoredItem>[0][],
  calls: { args: unknown; options: CallOptions }[] = [],
): Operator {
  const results = items.map(scoredItem);
  return {
    call(_, args, options) {
      calls.push({ args, options });
      return Promise.resolve({ outputs: [{ results }], blobs: [], generation: 1 });
    },
  };
}

/** Of rows that are short: nothing is put away. */
const scorerOf = (
  pool: Operator | null,
  put = () => Promise.reject(new Error("nothing is long here")),
) => new RewardScorer({ pool, artifacts: { put } });

Deno.test("RewardScorer adds weight x score, and keeps each part unweighted", async () => {
  const functions = [
    here("right", ({ completion, answer }) => completion === answer ? 1 : 0),
    here(
      "short",
      ({ completion, row, tokens }) => completion.length * (row.extra as number) + tokens,
      0.5,
    ),
  ];
  deepStrictEqual(await scorerOf(null).score(group(functions), options), [
    { reward: 4.5, parts: { right: 0, short: 9 }, failed: null, detail: null },
    { reward: 9, parts: { right: 1, short: 16 }, failed: null, detail: null },
  ]);
});

Deno.test("RewardScorer pays a conditional reward only where its condition holds", async () => {
  const functions = [
    { ...here("short", ({ completion }) => -completion.length), when: "right" },
    here("right", ({ completion }) => ({ a: 0, bb: 1, ccc: -1, dddd: 0.5 })[completion]!),
  ];
  const scores = await scorerOf(null).score(group(functions, ["a", "bb", "ccc", "dddd"]), options);
  deepStrictEqual(scores.map(({ reward }) => reward), [0, -1, -1, -3.5]);
  deepStrictEqual(scores.map(({ parts }) => parts.short), [-1, -2, -3, -4]);
});

Deno.test("RewardScorer keeps a function's other numbers as unweighted parts", async () => {
  const results: Parameters<typeof scoredItem>[0][] = [
    { id: "0", score: 1, metrics: { steps: 3 } },
    { id: "1", score: 0, metrics: {} },
  ];
  const scores = await scorerOf(pool(results)).score(group([there("judge")]), options);
  deepStrictEqual(scores.map(({ reward, parts }) => ({ reward, parts })), [
    { reward: 1, parts: { judge: 1, "judge/steps": 3 } },
    { reward: 0, parts: { judge: 0 } },
  ]);
});

Deno.test("RewardScorer turns a throw into a failure of that sample alone", async () => {
  const picky = here("picky", ({ completion }) => {
    if (completion === "a") throw new RangeError("the row's answer is not a number");
    return 1;
  });
  const [broken, whole] = await scorerOf(null).score(group([here("one", () => 1), picky]), options);
  deepStrictEqual(broken, {
    reward: null,
    parts: {},
    failed: "reward_error",
    detail: "picky: the row's answer is not a number",
  });
  deepStrictEqual([whole!.reward, whole!.failed], [2, null]);
});

Deno.test("RewardScorer keeps other numbers of an engine's reward as parts", async () => {
  const judge = here(
    "judge",
    ({ completion }) => completion === "a" ? { score: 0.9, metrics: { right: 0 } } : 1,
  );
  const scores = await scorerOf(null).score(group([judge]), options);
  deepStrictEqual(scores.map(({ reward, parts }) => ({ reward, parts })), [
    { reward: 0.9, parts: { judge: 0.9, "judge/right": 0 } },
    { reward: 1, parts: { judge: 1 } },
  ]);
});

Deno.test("RewardScorer reports reward_none where there is nothing to grade by", async () => {
  const results: Parameters<typeof scoredItem>[0][] = [{
    id: "0",
    outcome: "none",
    score: null,
    error: "it returned None",
  }, {
    id: "1",
    score: 1,
  }];
  const none = here("none", () => null);
  const broken = here("broken", ({ completion }) => {
    if (completion === "a") throw new RangeError("broken");
    return 1;
  });
  const reasons = async (...functions: ScoringFunction[]) =>
    (await scorerOf(pool(results)).score(group(functions), options)).map((
      { failed, detail },
    ) => [failed, detail]);
  deepStrictEqual(await reasons(there("judge")), [["reward_none", "judge: it returned None"], [
    null,
    null,
  ]]);
  const nothing = "none: the row has nothing to grade by";
  deepStrictEqual(await reasons(none), [["reward_none", nothing], ["reward_none", nothing]]);
  deepStrictEqual(await reasons(none, broken), [["reward_error", "broken: broken"], [null, null]]);
});

Deno.test("RewardScorer sums the rewards that apply, and whose condition applies", async () => {
  const graded = here("graded", ({ completion }) => ({ a: 2, bb: null, ccc: -1 })[completion]!, 3);
  const brief = { ...here("brief", () => 0.5), when: "graded" };
  const polite = here("polite", ({ completion }) => completion === "ccc" ? null : 0.25);
  const of = async (...functions: ScoringFunction[]) =>
    (await scorerOf(null).score(group(functions, ["a", "bb", "ccc"]), options)).map((
      { reward, parts, failed },
    ) => [reward, parts, failed]);
  deepStrictEqual(await of(graded, brief, polite), [
    [6.75, { graded: 2, brief: 0.5, polite: 0.25 }, null],
    [0.25, { brief: 0.5, polite: 0.25 }, null],
    [-3, { graded: -1, brief: 0.5 }, null],
  ]);
  deepStrictEqual((await of(graded, brief))[1], [null, {}, "reward_none"]);
});

Deno.test("RewardScorer weighs what applies, for any answers", async () => {
  const answer = fc.option(fc.integer({ min: -8, max: 8 }), { nil: null });
  const samples = fc.array(fc.tuple(answer, answer, answer), { minLength: 1, maxLength: 6 });
  await fc.assert(fc.asyncProperty(samples, async (answersOfAll) => {
    const weights = [1, 2, -0.5];
    const functions = weights.map((weight, i) =>
      here(`f${i}`, ({ completion }) => answersOfAll[Number(completion)]![i]!, weight)
    );
    const texts = answersOfAll.map((_, place) => String(place));
    const scores = await scorerOf(null).score(group(functions, texts), options);
    const wanted = answersOfAll.map((answers) => {
      if (answers.every((one) => one === null)) return null;
      return answers.reduce<number>((sum, one, i) => sum + weights[i]! * (one ?? 0), 0);
    });
    deepStrictEqual(scores.map(({ reward }) => reward === null ? null : reward + 0), wanted);
    deepStrictEqual(
      scores.map(({ failed }) => failed),
      wanted.map((reward) => reward === null ? "reward_none" : null),
    );
  }));
});

Deno.test("RewardScorer gives a reward model the prompt and the tools before any template", async () => {
  const calls: { args: unknown; options: CallOptions }[] = [];
  const results: Parameters<typeof scoredItem>[0][] = [{ id: "0", score: -1.5 }, {
    id: "1",
    outcome: "error",
    score: null,
    error: "too long",
  }];
  const model: RewardModelSettings = {
    path: "/rm",
    dtype: "float32",
    device: "cpu",
    threads: 1,
    batch_tokens_max: 1,
    template_arguments: {},
    turn_end: "template",
  };
  const judge: ScoringFunction = { ...there("judge"), source: null, model };
  const prompt = [{ role: "user", content: "p" }];
  const tools = '[{"type":"function"}]';
  const request = group([judge]);
  const scored = await scorerOf(pool(results, calls))
    .score({ ...request, row: { ...request.row, prompt, tools } }, options);
  deepStrictEqual(calls[0]!.args, {
    model,
    shared: { json: JSON.stringify({ prompt, tools }) },
    items: [
      { id: "0", completion: "a", tokens: 2, token_ids: [2, 3], stop: "stop" },
      { id: "1", completion: "bb", tokens: 2, token_ids: [2, 3], stop: "stop" },
    ],
  });
  deepStrictEqual(scored.map(({ reward, failed, detail }) => [reward, failed, detail]), [
    [-1.5, null, null],
    [null, "reward_error", "judge: too long"],
  ]);
});

Deno.test("RewardScorer finds the sample of a pool's answer by its id", async () => {
  const calls: { args: unknown; options: CallOptions }[] = [];
  const results: Parameters<typeof scoredItem>[0][] = [{ id: "1", score: 0.25 }, {
    id: "0",
    score: 0,
  }];
  const scorer = scorerOf(pool(results, calls));
  const scores = await scorer.score(group([there("mine")]), options);
  deepStrictEqual(scores.map(({ reward, failed }) => [reward, failed]), [[0, null], [0.25, null]]);
  strictEqual(calls[0]!.options.key, "score_group/x/mine");
  const { function: source, style, timeout_ms, shared, items } = calls[0]!.args as Record<
    string,
    unknown
  >;
  deepStrictEqual([source, style, timeout_ms], ["my.py:score", null, 1000]);
  await scorer.score(group([{ ...there("mine"), style: "trl" }]), options);
  strictEqual((calls[1]!.args as { style: string }).style, "trl");
  await scorer.score(group([{ ...there("mine"), settings: { credit: "all" } }]), options);
  strictEqual((calls[2]!.args as { settings: string }).settings, '{"credit":"all"}');
  const fields = { prompt: "p", row_prompt: "p", prompt_ids: [1], columns: { extra: 7 } };
  deepStrictEqual(shared, { json: JSON.stringify({ ...fields, answer: "bb" }) });
  deepStrictEqual((items as unknown[])[1], {
    id: "1",
    completion: "bb",
    tokens: 2,
    token_ids: [2, 3],
    stop: "stop",
  });
});

Deno.test("RewardScorer sends a long row once, as one artifact", async () => {
  const calls: { args: unknown; options: CallOptions }[] = [];
  const put: Uint8Array[] = [];
  const ref = { sha256: "0".repeat(64), bytes: 1 };
  const artifacts = { put: (bytes: Uint8Array) => (put.push(bytes), Promise.resolve(ref)) };
  const unused = "x".repeat(660_000);
  const request = group([there("one"), there("two")], Array(8).fill("a"));
  const row = { ...request.row, columns: { unused } };
  await new RewardScorer({ pool: pool([], calls), artifacts }).score({ ...request, row }, options);
  deepStrictEqual(calls.map(({ args }) => (args as { shared: unknown }).shared), [
    { artifact: ref },
    {
      artifact: ref,
    },
  ]);
  strictEqual(calls.every(({ args }) => JSON.stringify(args).length < 2000), true);
  deepStrictEqual(
    put.map((bytes) => JSON.parse(new TextDecoder().decode(bytes)).columns.unused.length),
    [
      660_000,
      660_000,
    ],
  );
});

Deno.test("RewardScorer gives the pool a context's signal and durability", async () => {
  class Context {
    readonly key = "score_group/x";
    readonly attempt = 2;
    readonly #stop = new AbortController();
    abort(): void {
      this.#stop.abort();
    }
    get signal(): AbortSignal {
      return this.#stop.signal;
    }
    durable(): Promise<void> {
      return Promise.reject(new Error(`${this.key} is not durable`));
    }
    record(): Promise<void> {
      return Promise.resolve();
    }
  }
  const calls: { args: unknown; options: CallOptions }[] = [];
  const context = new Context();
  await scorerOf(pool([], calls)).score(group([there("mine")]), context);
  context.abort();
  const callOptions = calls[0]!.options;
  strictEqual(callOptions.signal!.aborted, true);
  await rejects(callOptions.durable!(), /score_group\/x is not durable/);
});

Deno.test("RewardScorer: a pool that was replaced is recorded as restarted", async () => {
  const losses: Loss[] = [{ cause: "out_of_memory", seconds: 3 }];
  const replaced = { ...pool([]), takeLoss: () => losses.shift() ?? null };
  const scorer = scorerOf(replaced);
  for (let n = 0; n < 2; n++) await scorer.score(group([there("mine")]), options);
  const value = {
    cause: "out_of_memory",
    action: "restart",
    version: null,
    batches_redone: 0,
    seconds: 3,
  };
  deepStrictEqual(recoveries, [["score_group/x/mine", value]]);
});

Deno.test("RewardScorer names each way in which a process reward fails", async () => {
  const results: Parameters<typeof scoredItem>[0][] = [
    { id: "0", outcome: "timeout", error: "longer than 1000 ms" },
    { id: "1", outcome: "crash", error: "exit code 139" },
    { id: "2", score: null },
  ];
  const scorer = scorerOf(pool(results));
  const scores = await scorer.score(group([there("mine")], ["a", "b", "c", "d"]), options);
  deepStrictEqual(scores.map(({ reward }) => reward), [null, null, null, null]);
  deepStrictEqual(scores.map(({ failed }) => failed), [
    "reward_timeout",
    "reward_crash",
    "reward_no_score",
    "reward_missing",
  ]);
  strictEqual(scores[0]!.detail, "mine: longer than 1000 ms");
});

Deno.test("RewardScorer fails the stage without reward processes", async () => {
  await rejects(scorerOf(null).score(group([there("mine")]), options), { code: "infrastructure" });
});

Deno.test("RewardScorer: samples of a run that ends in the middle have not failed", async () => {
  const ended = new AbortController();
  const remote = here("remote", async ({ signal }) => {
    ended.abort(new Error("the run ends"));
    await Promise.resolve();
    throw signal.reason;
  });
  const scorer = scorerOf(null);
  await rejects(
    scorer.score(group([remote]), { ...options, signal: ended.signal }),
    /the run ends/,
  );
});
