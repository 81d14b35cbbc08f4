import { createHash } from "node:crypto";
import pLimit, { type LimitFunction } from "p-limit";
import { z } from "zod";
import { setting } from "../data/mod.ts";
import {
  defineReward,
  graderSetting,
  type Reward,
  type RewardInput,
  type Score,
} from "./define.ts";

const /** @internal */ config = z.strictObject({
  url: z.string().regex(/^https?:\/\/[^\s/]+/, "must be an http or https URL").describe(
    "The server's endpoint, such as http://127.0.0.1:5000/get_reward.",
  ).register(setting, graderSetting),
  timeout_ms: z.int().positive().default(60_000).describe(
    "Limit for one sample's score, with all tries; beyond it, the sample fails.",
  ).register(setting, { ...graderSetting, unit: "ms", resume: "stages" }),
  requests_max: z.int().positive().default(32).describe("Concurrent requests to the server.")
    .register(setting, { ...graderSetting, unit: "requests", resume: "stages" }),
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

const FIRST_WAIT_MS = 250;
const WAIT_MAX_MS = 10_000;
/** What to try again beside 5xx: Request Timeout, Too Many Requests. */
const TRY_AGAIN = [408, 429];
const SHOWN_CHARACTERS = 200;

/** How time passes, for tests. @internal */
type RemoteClock = { now(): number; sleep(ms: number, signal: AbortSignal): Promise<void> };
const CLOCK: RemoteClock = {
  now: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      const timer = setTimeout(resolve, ms);
      signal.addEventListener("abort", () => {
        clearTimeout(timer);
        reject(signal.reason);
      }, { once: true });
    }),
};

/** The requests in flight to each server, from all groups; two rewards may ask one server. */
const limits = new Map<string, LimitFunction>();

/**
 * The score that a server returns, by OpenRLHF's protocol: `POST { query: [prompt + completion],
 * prompts: [prompt], labels: [answer] }` is answered by `{ rewards, scores, extra_logs }`. `null`
 * is not applicable; `scores` is the metric `filter_score`; numbers of `extra_logs` are metrics.
 *
 * A server that cannot be reached, is overloaded (429, with its `Retry-After`) or fails (5xx) is
 * asked again until `timeout_ms` is over. The header `Idempotency-Key` is the hash of the request,
 * so a server can answer what it has answered before.
 *
 * Source: OpenRLHF/OpenRLHF `3c3be62`, `openrlhf/utils/agent.py` (`_fetch_rewards_via_http`) and
 * `openrlhf/cli/serve_rm.py`. There, a request that fails five times has no reward.
 * @throws {Error} If there is no score in time, or the answer is none.
 */
export const remote: Reward<"remote", typeof config.shape, Reads> = defineReward({
  name: "remote",
  runs_on: "engine",
  config,
  score: (input: Reads, settings) => {
    const { url, requests_max } = settings;
    const key = `${requests_max} ${url}`;
    if (!limits.has(key)) limits.set(key, pLimit(requests_max));
    return limits.get(key)!(() => scoreRemotely(input, settings, CLOCK));
  },
});

export async function scoreRemotely(
  { prompt, completion, row, signal }: Reads,
  { url, timeout_ms }: Pick<Settings, "url" | "timeout_ms">,
  clock: RemoteClock,
): Promise<Score> {
  const body = JSON.stringify({
    query: [prompt + completion],
    prompts: [prompt],
    labels: [row.answer ?? null],
  });
  const headers = {
    "content-type": "application/json",
    "idempotency-key": createHash("sha256").update(`${url}\n${body}`).digest("hex"),
  };
  const end = clock.now() + timeout_ms;
  for (let tries = 1, wait = FIRST_WAIT_MS;; tries += 1, wait = Math.min(2 * wait, WAIT_MAX_MS)) {
    const left = Math.max(1, Math.ceil(end - clock.now()));
    const within = AbortSignal.any([signal, AbortSignal.timeout(left)]);
    const tried = await post(url, { method: "POST", body, headers, signal: within });
    signal.throwIfAborted();
    if ("score" in tried) return tried.score;
    const pause = tried.wait_ms ?? wait;
    if (tried.final || clock.now() + pause >= end) {
      const times = tries === 1 ? "" : ` (${tries} tries)`;
      throw new Error(`Cannot get a score from ${url} because ${tried.why}${times}`);
    }
    await clock.sleep(pause, signal);
  }
}

/** A score, or why there is none; `final`: asking again would not help. */
type Tried = { score: Score } | { why: string; final: boolean; wait_ms?: number };

async function post(url: string, request: RequestInit): Promise<Tried> {
  try {
    const response = await fetch(url, request);
    const text = await response.text();
    if (response.ok) return scoreOf(text);
    const { status } = response;
    const wait_ms = saidWait(response.headers);
    return {
      why: `it answered ${status}: ${text.slice(0, SHOWN_CHARACTERS).trim() || "no text"}`,
      final: status < 500 && !TRY_AGAIN.includes(status),
      ...(wait_ms !== null && { wait_ms }),
    };
  } catch (error) {
    const { name } = error as Error;
    const why = name === "TimeoutError" ? "it did not answer in time" : causeOf(error);
    return { why, final: false };
  }
}

/**
 * How long a server asks to wait, in ms: seconds, or a date by the server's own clock; null: it
 * does not say. At least the first pause: `0` would be asked without end.
 */
function saidWait(headers: Headers): number | null {
  const said = headers.get("retry-after")?.trim() ?? "";
  const ms = /^\d+$/.test(said)
    ? Number(said) * 1000
    : Date.parse(said) - Date.parse(headers.get("date") ?? "");
  return Number.isNaN(ms) ? null : Math.max(ms, FIRST_WAIT_MS);
}

/** What a failed fetch was caused by: itself it says only that it failed. */
function causeOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? causeOf(cause) : message;
}

function scoreOf(text: string): Tried {
  const why = (problem: string): Tried => ({ why: `its answer ${problem}`, final: true });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return why(`is not JSON: ${text.slice(0, SHOWN_CHARACTERS)}`);
  }
  const { data, error } = Answer.safeParse(value);
  if (data === undefined) {
    const { path, message } = error.issues[0]!;
    return why(`is no reward: ${path.join(".") || "it"}: ${message}`);
  }
  const { rewards: score, scores, extra_logs } = data;
  if (score === null) return { score: null };
  const logged = Object.entries(extra_logs ?? {}).flatMap(([name, value]): [string, number][] => {
    const number = one(z.number()).safeParse(value);
    return number.success ? [[name, number.data]] : [];
  });
  const filter = typeof scores === "number" ? [["filter_score", scores]] : [];
  return { score: { score, metrics: Object.fromEntries([...filter, ...logged]) } };
}

/** Why a server cannot be reached at all; null: something answers there. */
export async function unreachable(url: string): Promise<string | null> {
  try {
    const response = await fetch(url, { method: "HEAD", signal: AbortSignal.timeout(10_000) });
    await response.body?.cancel();
    return null;
  } catch (error) {
    return causeOf(error);
  }
}
