import { z } from "zod";
import { setting } from "../data/mod.ts";
import {
  defineReward,
  graderSetting,
  type Reward,
  type RewardInput,
  type Score,
  type Unready,
} from "./define.ts";
import {
  ask,
  httpUrl,
  limited,
  LIMITS,
  reached,
  readJson,
  type ServerClock,
  serverLimits,
} from "./server.ts";

const /** @internal */ config = z.strictObject({
  url: httpUrl.describe(
    "The server's endpoint, such as http://127.0.0.1:5000/get_reward.",
  ).register(setting, graderSetting),
  ...serverLimits,
});
/** @internal */
type Settings = z.output<typeof config>;
/** @internal */
type Reads = Pick<RewardInput, "prompt" | "completion" | "signal"> & { row: { answer?: string } };

/** What a server answers for one sample: each value alone or as a list of one. */
const one = <Value extends z.ZodType>(value: Value) =>
  z.union([value, z.array(value).length(1).transform(([only]) => only as z.output<Value>)]);
const Answer = z.object({
  rewards: one(z.number().nullable()),
  scores: one(z.number().nullable()).optional(),
  extra_logs: z.record(z.string(), z.unknown()).nullish(),
});

/**
 * The score that a server returns, by OpenRLHF's protocol: `POST { query: [prompt + completion],
 * prompts: [prompt], labels: [answer] }` is answered by `{ rewards, scores, extra_logs }`. `null`
 * is not applicable; `scores` is the metric `filter_score`; numbers of `extra_logs` are metrics.
 *
 * Source: OpenRLHF/OpenRLHF `3c3be62`, `openrlhf/utils/agent.py` (`_fetch_rewards_via_http`) and
 * `openrlhf/cli/serve_rm.py`. There, a request that fails five times has no reward.
 * @throws {Error} If there is no score in time, or the answer is none.
 */
export const remote: Reward<"remote", typeof config.shape, Reads> = defineReward({
  name: "remote",
  about: "The score that an HTTP server returns.",
  runs_on: "engine",
  kept: { by: "settings", version: 1, apart_from: LIMITS, usually: false },
  right_at: null,
  config,
  unready: unreachable,
  score: (input: Reads, settings) => limited(settings, () => scoreRemotely(input, settings)),
});

export async function scoreRemotely(
  { prompt, completion, row, signal }: Reads,
  { url, timeout_ms }: Pick<Settings, "url" | "timeout_ms">,
  clock?: ServerClock,
): Promise<Score> {
  const body = JSON.stringify({
    query: [prompt + completion],
    prompts: [prompt],
    labels: [row.answer ?? null],
  });
  const text = await ask({ url, body, timeout_ms, signal }, clock);
  const { rewards: score, scores, extra_logs } = readJson(text, {
    url,
    shape: Answer,
    what: "reward",
  });
  if (score === null) return null;
  const logged = Object.entries(extra_logs ?? {}).flatMap(([name, value]): [string, number][] => {
    const number = one(z.number()).safeParse(value);
    return number.success ? [[name, number.data]] : [];
  });
  const filter = typeof scores === "number" ? [["filter_score", scores]] : [];
  return { score, metrics: Object.fromEntries([...filter, ...logged]) };
}

/** Why a server cannot be reached at all, and what to do; null: something answers there. */
export async function unreachable({ url }: Pick<Settings, "url">): Promise<Unready | null> {
  const found = await reached(url, { method: "HEAD" });
  if (!("why" in found)) return null;
  const why = `the reward server ${url} cannot be reached: ${found.why}`;
  return { why, fix: "start it, or correct reward[].url" };
}
