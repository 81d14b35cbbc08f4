import { deepStrictEqual, strictEqual } from "node:assert/strict";
import {
  decodeColumn,
  encodeSlab,
  type Group,
  type Row,
  Sampling,
  type Trajectory,
} from "../../../data/mod.ts";
import { type GeneratedGroup, type ScoredGroup, scoreGroup } from "../../../flows/mod.ts";
import { sampledBy } from "../../../flows/stages/score_group.ts";
import { RewardConfig, type RewardShaping } from "../../../rewards/mod.ts";
import type { Operator, ScoredItem } from "../../../workers/mod.ts";
import { type FakeBench, fakeBench } from "./alone.ts";
import { scoredItem } from "../fixtures.ts";

const LENGTH = RewardConfig.parse({ name: "length", unit: "characters", max: 4, prefer: "long" });
const EXACT = RewardConfig.parse({ name: "exact_match", weight: 2 });
const JUDGE = RewardConfig.parse({ name: "python", source: "/x/my.py:judge" });
const ROW: Row = { row_id: "row-0", prompt: "say", answer: "four", columns: {} };

/** What the reward process says of each completion, which is its own text. */
const ANSWERS: Record<string, Partial<ScoredItem>> = {
  good: { score: 1, metrics: { right: 1, steps: 3 } },
  plain: { score: 0.25, metrics: {} },
  slow: { outcome: "timeout", error: "took longer than 10 ms" },
  broken: { outcome: "error", error: "KeyError: 'x'" },
  unmarked: { outcome: "none" },
};
const pool: Operator = {
  call(_, args) {
    const { items } = args as { items: { id: string; completion: string }[] };
    const results = items.map(({ id, completion }) => scoredItem({ id, ...ANSWERS[completion] }));
    return Promise.resolve({ outputs: [{ results }], blobs: [], generation: 1 });
  },
};

/** One prompt token, then one token per character. */
function trajectory(text: string, sample: number, token_rewards?: Float32Array): Trajectory {
  const tokens = Int32Array.from([1, ...[...text].map((letter) => letter.charCodeAt(0))]);
  return {
    sample,
    tokens,
    action_mask: Uint8Array.from(tokens, (_, place) => place === 0 ? 0 : 1),
    behaviour_logp: new Float32Array(tokens.length),
    versions: [],
    stop: text.length > 4 ? "length" : "stop",
    text,
    ...(token_rewards && { token_rewards }),
  };
}

/** A group of these texts, behind a different one in its slab. */
async function groupOf({ artifacts }: FakeBench, trajectories: Trajectory[]) {
  const groups = [[trajectory("other", 0)], trajectories].map((sampled, draw): Group => ({
    draw,
    row_id: ROW.row_id,
    prompt_text: "say",
    trajectories: sampled,
  }));
  const sampling = Sampling.parse({ temperature: 1, top_p: 1, top_k: -1, tokens_max: 8, stop: [] });
  const slab = await artifacts.put(encodeSlab({ slab: "s", version: "v", sampling, groups }));
  return { draw: 1, slab, index: 1, samples: trajectories.map((_, sample) => sample) };
}

type Options = {
  rewards?: RewardConfig[];
  on_failed_sample?: "drop_group" | "drop_sample";
  item?: Partial<GeneratedGroup>;
  samples?: number[];
  shaping?: RewardShaping;
};

async function scored(texts: string[] | Trajectory[], options: Options = {}): Promise<ScoredGroup> {
  const bench = await fakeBench(() => ({ pool }));
  const { rewards = [JUDGE], on_failed_sample = "drop_sample", item, samples, shaping } = options;
  const sampled = texts.map((one, i) => typeof one === "string" ? trajectory(one, i) : one);
  const whole = await groupOf(bench, sampled);
  const group = { ...whole, samples: samples ?? whole.samples };
  const whence = { sampled_at: 0, sampled_by: "v" };
  const of = {
    item: { id: "draw-1", row: ROW, group, ...whence, ...item },
    rewards,
    on_failed_sample,
  };
  const input = { ...of, ...(shaping && { shaping }) };
  const { group: { slab: _, ...scoredGroup }, ...rest } = await bench.done(scoreGroup, input);
  return { ...rest, group: scoredGroup } as ScoredGroup;
}

Deno.test("scoreGroup() sums weighted rewards, and keeps each part unweighted", async () => {
  deepStrictEqual(await scored(["four", "fo", "fourfour"], { rewards: [LENGTH, EXACT] }), {
    id: "draw-1",
    group: { draw: 1, index: 1, samples: [0, 1, 2] },
    sampled_at: 0,
    sampled_by: "v",
    rewards: [3, 0.5, 1],
    parts: { length: [1, 0.5, 1], exact_match: [1, 0, 0] },
    lengths: [4, 2, 8],
    stops: ["stop", "stop", "length"],
    failed: null,
    detail: null,
  } as unknown as ScoredGroup);
});

Deno.test("scoreGroup() scores the samples that are left of a group, in their order", async () => {
  const { group, rewards, lengths } = await scored(["a", "bb", "ccc"], {
    rewards: [LENGTH],
    samples: [2, 0],
  });
  deepStrictEqual([group.samples, rewards, lengths], [[2, 0], [0.75, 0.25], [3, 1]]);
});

Deno.test("scoreGroup() drops samples without a score, and counts them by reason", async () => {
  const { group, rewards, lengths, failures, failed, detail } = await scored(
    ["slow", "good", "broken", "slow", "plain"],
  );
  deepStrictEqual([group.samples, rewards, lengths], [[1, 4], [1, 0.25], [4, 5]]);
  deepStrictEqual(failures, { reward_timeout: 2, reward_error: 1 });
  deepStrictEqual([failed, detail], [null, "judge: took longer than 10 ms"]);
});

Deno.test("scoreGroup() takes the whole group out if one failed sample drops it", async () => {
  const { failed, detail, failures } = await scored(["good", "broken"], {
    on_failed_sample: "drop_group",
  });
  deepStrictEqual([failed, detail], ["reward_error", "judge: KeyError: 'x'"]);
  deepStrictEqual(failures, { reward_error: 1 });
});

Deno.test("scoreGroup() names a real failure first if no sample has a score", async () => {
  const none = await scored(["unmarked", "unmarked"]);
  deepStrictEqual([none.failed, none.failures], ["reward_none", { reward_none: 2 }]);
  const mixed = await scored(["unmarked", "broken"]);
  deepStrictEqual([mixed.failed, mixed.detail], ["reward_error", "judge: KeyError: 'x'"]);
  deepStrictEqual(mixed.failures, { reward_none: 1, reward_error: 1 });
});

Deno.test("scoreGroup() keeps a number beside scores only where all samples have it", async () => {
  const { parts } = await scored(["good", "plain"]);
  // `right` of a bare score follows from that score.
  deepStrictEqual(parts, { judge: [1, 0.25], "judge/right": [1, 0] });
  deepStrictEqual((await scored(["good", "good"])).parts, {
    judge: [1, 1],
    "judge/right": [1, 1],
    "judge/steps": [3, 3],
  });
});

Deno.test("scoreGroup() keeps a sample to which one of several rewards applies", async () => {
  const { rewards, parts, failures } = await scored(["good", "unmarked"], {
    rewards: [JUDGE, LENGTH],
  });
  deepStrictEqual([rewards, failures], [[2, 1], undefined]);
  deepStrictEqual(parts, {
    judge: [1, null],
    "judge/right": [1, null],
    "judge/steps": [3, null],
    length: [1, 1],
  });
  const none = await scored(["unmarked"], { rewards: [JUDGE, LENGTH] });
  deepStrictEqual(none.parts, { judge: [null], length: [1] });
});

Deno.test("scoreGroup() hands on who sampled the group, and that tokens have rewards", async () => {
  const item = { sampled_at: 3, sampled_by: "v3" };
  const { sampled_at, sampled_by, token_rewards } = await scored(
    [trajectory("a", 0), trajectory("b", 1, Float32Array.of(0, 1))],
    { rewards: [LENGTH], item },
  );
  deepStrictEqual({ sampled_at, sampled_by, token_rewards }, { ...item, token_rewards: true });
  const plain = await scored(["a"], { rewards: [LENGTH] });
  deepStrictEqual(["token_rewards", "failures"].filter((name) => name in plain), []);
});

Deno.test("a resume scores a group again only if a sample of it failed", async () => {
  const failed = (group: ScoredGroup) => scoreGroup.failed!(group);
  strictEqual(failed(await scored(["good", "slow"])), true);
  strictEqual(failed(await scored(["good", "plain"])), false);
});

Deno.test("sampledBy() is the version of the group that was sampled last", () => {
  const group = (sampled_at?: number) =>
    ({ ...(sampled_at !== undefined && { sampled_at, sampled_by: `v${sampled_at}` }) }) as never;
  strictEqual(sampledBy([group(2), group(5), group(3)]), "v5");
  strictEqual(sampledBy([group(0), group()]), undefined);
  strictEqual(sampledBy([]), undefined);
});

Deno.test("scoreGroup() asks rewards about rows of their sources, and shapes the sum", async () => {
  const on = (source: string, weight: number) =>
    RewardConfig.parse({ name: "exact_match", label: source, on: { source }, weight });
  const rewards = [on("math", 1), on("code", 4)];
  const item = { row: { ...ROW, row_id: "code/7" } };
  const { rewards: paid, parts } = await scored(["four", "fo"], { rewards, item });
  deepStrictEqual(paid, [4, 0]);
  deepStrictEqual(parts, { math: [null, null], code: [1, 0] });
  const { failed, detail } = await scored(["four"], { rewards });
  deepStrictEqual([failed, detail], ["reward_none", "math: it applies only to rows of math"]);
  const shaping = { token_cost: 0.25, truncated: { set: -1 } };
  const shaped = await scored(["four", "toolong"], { rewards: [EXACT], shaping });
  deepStrictEqual(shaped.rewards, [1, -2.75]);
});

Deno.test("scoreGroup() keeps what a function gives each token of the samples left", async () => {
  const bench = await fakeBench(() => ({ pool }));
  const sampled = ["good", "broken", "by"].map((text, i) => trajectory(text, i));
  const group = await groupOf(bench, sampled);
  const rewards = [{ ...JUDGE, weight: 2 }];
  const item = { id: "draw-1", row: ROW, group, sampled_at: 0, sampled_by: "v" };
  ANSWERS.by = { score: 3, token_scores: [1, 2] };
  const { token_scores, rewards: paid } = await bench.done(scoreGroup, {
    item,
    rewards,
    on_failed_sample: "drop_sample" as const,
  });
  delete ANSWERS.by;
  deepStrictEqual(paid, [2, 6]);
  const column = decodeColumn(await bench.artifacts.get(token_scores!));
  deepStrictEqual(column.map((row) => [...row]), [[0, 0, 0, 0, 0], [0, 2, 4]]);
});
