/** Servers that are asked for scores over HTTP. */
import { createHash } from "node:crypto";
import pLimit, { type LimitFunction } from "p-limit";
import { z } from "zod";
import { setting } from "../data/mod.ts";
import { graderSetting } from "./define.ts";

/** A server's address. */
export const httpUrl: z.ZodString = z.string().regex(
  /^https?:\/\/[^\s/]+/,
  "must be an http or https URL",
);

/** The limits of a reward that asks a server. */
export const serverLimits = {
  timeout_ms: z.int().positive().default(60_000).describe(
    "Limit for one sample's score, with all tries; beyond it, the sample fails.",
  ).register(setting, { ...graderSetting, unit: "ms", resume: "stages" }),
  requests_max: z.int().positive().default(32).describe("Concurrent requests to the server.")
    .register(setting, { ...graderSetting, unit: "requests", resume: "stages" }),
};

/** Settings of a server on which no score depends. */
export const LIMITS: readonly string[] = Object.keys(serverLimits);

/** @internal */
type Request = {
  url: string;
  /** JSON. */
  body: string;
  headers?: Record<string, string>;
  /** For all tries. */
  timeout_ms: number;
  signal: AbortSignal;
};

/** How time passes, for tests. */
export type ServerClock = {
  now(): number;
  sleep(ms: number, signal: AbortSignal): Promise<void>;
};
const CLOCK: ServerClock = {
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

const FIRST_WAIT_MS = 250;
const WAIT_MAX_MS = 10_000;
/** What to try again beside 5xx: Request Timeout, Too Many Requests. */
const TRY_AGAIN = [408, 429];
const SHOWN_CHARACTERS = 200;

/**
 * Posts JSON and returns the text of the answer. A server that cannot be reached, is overloaded
 * (429, with its `Retry-After`) or fails (5xx) is asked again until `timeout_ms` is over. The
 * header `Idempotency-Key` is the request's hash, so a server can answer what it has answered.
 * @throws {Error} If there is no answer in time, or it is one that a retry would not change.
 */
export async function ask(request: Request, clock: ServerClock = CLOCK): Promise<string> {
  const { url, body, timeout_ms, signal } = request;
  const headers = {
    ...request.headers,
    "content-type": "application/json",
    "idempotency-key": requestKey(url, body),
  };
  const end = clock.now() + timeout_ms;
  for (let tries = 1, wait = FIRST_WAIT_MS;; tries += 1, wait = Math.min(2 * wait, WAIT_MAX_MS)) {
    const remaining = Math.max(1, Math.ceil(end - clock.now()));
    const within = AbortSignal.any([signal, AbortSignal.timeout(remaining)]);
    const tried = await post(url, { method: "POST", body, headers, signal: within });
    signal.throwIfAborted();
    if ("text" in tried) return tried.text;
    const pause = tried.wait_ms ?? wait;
    if (tried.final || clock.now() + pause >= end) {
      throw unanswered(url, tries === 1 ? tried.why : `${tried.why} (${tries} tries)`);
    }
    await clock.sleep(pause, signal);
  }
}

/** The hash that names a request. */
export function requestKey(url: string, body: string): string {
  return createHash("sha256").update(`${url}\n${body}`).digest("hex");
}

/** Why there is no score of a server. */
export function unanswered(url: string, why: string): Error {
  return new Error(`Cannot get a score from ${url} because ${why}`);
}

/**
 * What a server answered.
 * @param what What the answer should be, such as `reward`.
 * @throws {Error} If it is not that.
 */
export function readJson<Shape extends z.ZodType>(
  text: string,
  { url, shape, what }: { url: string; shape: Shape; what: string },
): z.output<Shape> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw unanswered(url, `its answer is not JSON: ${shown(text)}`);
  }
  const { data, error } = shape.safeParse(value);
  if (error === undefined) return data;
  const { path, message } = error.issues[0]!;
  throw unanswered(url, `its answer is no ${what}: ${path.join(".") || "it"}: ${message}`);
}

/** The beginning of what a server or a model wrote. */
export function shown(text: string): string {
  return text.slice(0, SHOWN_CHARACTERS).trim();
}

/** The requests in flight to each server, from all groups; two rewards may ask one server. */
const limits = new Map<string, LimitFunction>();

/** Calls `body` when fewer than `requests_max` of its calls for this server run. */
export function limited<T>(
  { url, requests_max }: { url: string; requests_max: number },
  body: () => Promise<T>,
): Promise<T> {
  const key = `${requests_max} ${url}`;
  if (!limits.has(key)) limits.set(key, pLimit(requests_max));
  return limits.get(key)!(body);
}

/** An answer, or why there is none; `final`: asking again would not help. */
type Tried = { text: string } | { why: string; final: boolean; wait_ms?: number };

async function post(url: string, request: RequestInit): Promise<Tried> {
  try {
    const response = await fetch(url, request);
    const text = await response.text();
    if (response.ok) return { text };
    const { status, headers } = response;
    const after = headers.get("retry-after")?.trim() ?? "";
    // Seconds, or a date (RFC 9110, 10.2.3) by the server's own clock.
    const retry_after_ms = /^\d+$/.test(after)
      ? Number(after) * 1000
      : Date.parse(after) - Date.parse(headers.get("date") ?? "");
    return {
      why: `it answered ${status}: ${shown(text) || "no text"}`,
      final: status < 500 && !TRY_AGAIN.includes(status),
      // `0` would be asked without end.
      wait_ms: Number.isNaN(retry_after_ms) ? undefined : Math.max(retry_after_ms, FIRST_WAIT_MS),
    };
  } catch (error) {
    const { name } = error as Error;
    const why = name === "TimeoutError" ? "it did not answer in time" : causeOf(error);
    return { why, final: false };
  }
}

/** What a failed fetch was caused by: itself it says only that it failed. */
function causeOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? causeOf(cause) : message;
}

/** The status that a server answers with at all, or why it cannot be reached. */
export async function reached(
  url: string,
  request: RequestInit,
): Promise<{ status: number } | { why: string }> {
  try {
    const response = await fetch(url, { ...request, signal: AbortSignal.timeout(10_000) });
    await response.body?.cancel();
    return { status: response.status };
  } catch (error) {
    return { why: causeOf(error) };
  }
}
