import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { RewardConfig, scoringFunctions } from "../../rewards/mod.ts";
import { remote, scoreRemotely, unreachable } from "../../rewards/remote.ts";

type Seen = { body: unknown; key: string | null };

/** A server that answers with one response after the other, the last one from then on. */
async function withServer<T>(
  answers: (() => Response | Promise<Response>)[],
  body: (url: string, seen: Seen[]) => Promise<T>,
): Promise<T> {
  const seen: Seen[] = [];
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const posted = request.method === "POST" ? await request.json() : null;
      seen.push({ body: posted, key: request.headers.get("idempotency-key") });
      return await answers[Math.min(seen.length, answers.length) - 1]!();
    },
  );
  try {
    return await body(`http://127.0.0.1:${server.addr.port}/get_reward`, seen);
  } finally {
    await server.shutdown();
  }
}

const json = (value: unknown) => () => Response.json(value);
const status = (code: number, headers: HeadersInit = {}) => () =>
  new Response("busy", { status: code, headers });
const sample = (signal = new AbortController().signal) => ({
  prompt: "1+1=",
  completion: "2",
  row: { answer: "2" },
  signal,
});

/** A clock that only sleeping moves. */
function counted() {
  const slept: number[] = [];
  let now = 0;
  return {
    slept,
    now: () => now,
    sleep: (ms: number) => {
      slept.push(ms);
      now += ms;
      return Promise.resolve();
    },
  };
}

const LIMITS = { timeout_ms: 60_000 };

Deno.test("remote asks by OpenRLHF's protocol and returns score and metrics", async () => {
  const answer = { rewards: [0.5], scores: [1], extra_logs: { length: [3], kind: "x", n: 2 } };
  await withServer([json(answer)], async (url, seen) => {
    const [scored] = await Promise.all([
      scoreRemotely(sample(), { url, ...LIMITS }, counted()),
    ]);
    deepStrictEqual(scored, { score: 0.5, metrics: { filter_score: 1, length: 3, n: 2 } });
    deepStrictEqual(seen[0]!.body, { query: ["1+1=2"], prompts: ["1+1="], labels: ["2"] });
  });
});

Deno.test("remote reads a number alone, and null as not applicable", async () => {
  await withServer([json({ rewards: 2 }), json({ rewards: [null] })], async (url) => {
    const score = () => scoreRemotely(sample(), { url, ...LIMITS }, counted());
    deepStrictEqual(await score(), { score: 2, metrics: {} });
    strictEqual(await score(), null);
  });
});

Deno.test("remote asks a failing server again, with one key, when it says", async () => {
  const answers = [
    status(429, { "retry-after": "7" }),
    status(503),
    status(500),
    json({ rewards: 1 }),
  ];
  await withServer(answers, async (url, seen) => {
    const clock = counted();
    const scored = await scoreRemotely(sample(), { url, ...LIMITS }, clock);
    deepStrictEqual(scored, { score: 1, metrics: {} });
    deepStrictEqual(clock.slept, [7000, 500, 1000]);
    match(seen[0]!.key!, /^[0-9a-f]{64}$/);
    deepStrictEqual(new Set(seen.map(({ key }) => key)).size, 1);
    await scoreRemotely({ ...sample(), completion: "3" }, { url, ...LIMITS }, clock);
    strictEqual(new Set(seen.map(({ key }) => key)).size, 2);
  });
});

Deno.test("remote waits until a date, and never asks without a pause", async () => {
  const date = "Wed, 21 Oct 2026 07:28:00 GMT";
  const answers = [
    status(503, { date, "retry-after": "Wed, 21 Oct 2026 07:28:09 GMT" }),
    status(503, { date, "retry-after": "Wed, 21 Oct 2026 07:27:00 GMT" }),
    status(429, { "retry-after": "0" }),
    status(429, { "retry-after": "soon" }),
    json({ rewards: 1 }),
  ];
  await withServer(answers, async (url) => {
    const clock = counted();
    await scoreRemotely(sample(), { url, ...LIMITS }, clock);
    deepStrictEqual(clock.slept, [9000, 250, 250, 2000]);
  });
});

Deno.test("remote gives up in time, or at once if a retry would not help", async () => {
  const fails = async (answer: () => Response, why: RegExp) =>
    await withServer([answer], async (url) => {
      await rejects(scoreRemotely(sample(), { url, ...LIMITS }, counted()), why);
    });
  await fails(
    status(503),
    /^Error: Cannot get a score from http:.* because it answered 503: busy \(\d+ tries\)$/,
  );
  await fails(status(404), /because it answered 404: busy$/);
  await fails(() => new Response("<html>"), /because its answer is not JSON: <html>$/);
  await fails(json({ reward: 1 }), /because its answer is no reward: rewards: /);
  await fails(json({ rewards: [1, 2] }), /because its answer is no reward: rewards: /);
  const nobody = await withServer([json({})], (url) => Promise.resolve(url));
  await rejects(
    scoreRemotely(sample(), { url: nobody, ...LIMITS }, counted()),
    /refused.*tries\)$/s,
  );
});

Deno.test("remote stops waiting at its time limit and at the run's end", async () => {
  const hanging = Promise.withResolvers<Response>();
  await withServer([() => hanging.promise], async (url) => {
    const clock = { ...counted(), now: () => performance.now() };
    await rejects(
      scoreRemotely(sample(), { url, timeout_ms: 50 }, clock),
      /because it did not answer in time$/,
    );
    const ended = new AbortController();
    const scoring = scoreRemotely(sample(ended.signal), { url, ...LIMITS }, clock);
    ended.abort(new Error("cancelled"));
    await rejects(scoring, /cancelled/);
    hanging.resolve(new Response());
  });
});

Deno.test("remote has at most requests_max requests in flight", async () => {
  let [now, most] = [0, 0];
  const slow = async () => {
    most = Math.max(most, ++now);
    await new Promise((resolve) => setImmediate(resolve));
    now -= 1;
    return Response.json({ rewards: 1 });
  };
  await withServer([slow], async (url) => {
    const [reward] = scoringFunctions([
      RewardConfig.parse({ name: "remote", url, requests_max: 3 }),
    ]);
    const scored = await Promise.all(
      Array.from({ length: 20 }, () => reward!.score({ ...sample(), answer: "2", tokens: 1 })),
    );
    strictEqual(scored.length, 20);
    strictEqual(most <= 3, true, `${most} in flight`);
  });
  strictEqual(remote.right_at, null);
});

Deno.test("unreachable() says why nothing answers, and is content with any answer", async () => {
  const url = await withServer([status(404)], async (url) => {
    strictEqual(await unreachable({ url }), null);
    return url;
  });
  match((await unreachable({ url }))!.why, /refused/);
});

Deno.test("remote's url must be one of http", () => {
  for (const url of ["127.0.0.1:5000", "ftp://a/b", "/get_reward"]) {
    const { error } = RewardConfig.safeParse({ name: "remote", url });
    match(error!.issues[0]!.message, /must be an http or https URL/, url);
  }
});
