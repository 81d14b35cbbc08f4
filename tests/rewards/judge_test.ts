import { deepStrictEqual, match, ok, rejects, strictEqual, throws } from "node:assert/strict";
import fc from "fast-check";
import { RewardConfig, rowCheck, scoringFunctions } from "../../rewards/mod.ts";
import { judge, scoreByJudge, unableToJudge } from "../../rewards/judge.ts";

type JudgeRequest = { path: string; key: string | null; body: Record<string, unknown> };

/** An API like OpenAI's whose model answers with `reply` of the user's message. */
async function withApi<T>(
  reply: (message: string) => string | null | Response,
  body: (url: string, requests: JudgeRequest[]) => Promise<T>,
): Promise<T> {
  const requests: JudgeRequest[] = [];
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const path = new URL(request.url).pathname;
      const key = request.headers.get("authorization");
      const sent = request.method === "POST" ? await request.json() : {};
      requests.push({ path, key, body: sent });
      const answer = reply(sent.messages?.at(-1).content ?? "");
      return answer instanceof Response
        ? answer
        : Response.json({ choices: [{ message: { role: "assistant", content: answer } }] });
    },
  );
  try {
    return await body(`http://127.0.0.1:${server.addr.port}/v1`, requests);
  } finally {
    await server.shutdown();
  }
}

const sample = (completion = "Paris") => ({
  prompt: "Capital of France?",
  completion,
  row: { answer: "Paris", rubric: ["short", "right"] },
  signal: new AbortController().signal,
});

const settings = (changes: Record<string, unknown>) =>
  judge.config.parse({
    url: "http://127.0.0.1:1/v1",
    model: "judge",
    template: "{completion}",
    ...changes,
  });

/** A clock that only sleeping moves. */
function counted() {
  const slept: number[] = [];
  const now = () => slept.reduce((sum, ms) => sum + ms, 0);
  return { slept, now, sleep: (ms: number) => Promise.resolve(void slept.push(ms)) };
}

Deno.test("judge sends what its template names, and reads the last verdict", async () => {
  await withApi(() => "Not [[1]]. It is right: [[8]]", async (url, requests) => {
    const template = 'Q {prompt} A {completion} R {answer} {rubric} {"json": 1}';
    const judgeSettings = settings({
      url: `${url}/`,
      template,
      system: "Judge.",
      lowest: 0,
      highest: 10,
      request: { seed: 1, temperature: 0.5, max_tokens: null },
    });
    strictEqual(await scoreByJudge(sample(), judgeSettings), 0.8);
    strictEqual(requests[0]!.path, "/v1/chat/completions");
    strictEqual(requests[0]!.key, null);
    deepStrictEqual(requests[0]!.body, {
      model: "judge",
      messages: [
        { role: "system", content: "Judge." },
        {
          role: "user",
          content: 'Q Capital of France? A Paris R Paris ["short","right"] {"json": 1}',
        },
      ],
      temperature: 0.5,
      seed: 1,
    });
  });
});

Deno.test("what a model or a row wrote is not filled in again", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom("{answer}", "{prompt}", "$&", "$1", "{", "}", "x"), {
        minLength: 1,
      }),
      async (parts) => {
        const completion = parts.join("");
        await withApi(() => "[[1]]", async (url, requests) => {
          await scoreByJudge(sample(completion), settings({ url, template: "<{completion}>" }));
          const [message] = requests[0]!.body.messages as { content: string }[];
          strictEqual(message!.content, `<${completion}>`);
        });
      },
    ),
    { numRuns: 20 },
  );
});

Deno.test("a verdict is a word of `verdicts`, or a number", async () => {
  const scored = (reply: string | null, changes: Record<string, unknown>) =>
    withApi(() => reply, (url) => scoreByJudge(sample(), settings({ url, ...changes }), counted()));
  const verdicts = { yes: 1, no: -0.5 };
  strictEqual(await scored("[[ YES ]]", { verdicts }), 1);
  strictEqual(await scored("[[no]]", { verdicts }), -0.5);
  strictEqual(await scored("[[3.5]]", {}), 3.5);
  strictEqual(await scored("Grade: 4", { pattern: "Grade: (\\d)", lowest: 1, highest: 5 }), 0.75);
  const fails = (reply: string | null, changes: Record<string, unknown>, why: RegExp) =>
    rejects(scored(reply, changes), why);
  await fails("[[maybe]]", { verdicts }, /because the judge's verdict 'maybe' is none of yes, no$/);
  await fails("[[maybe]]", {}, /the judge's verdict 'maybe' is not a number$/);
  await fails("[[ ]]", {}, /is not a number$/);
  await fails("[[11]]", { lowest: 0, highest: 10 }, /verdict 11 is not from 0 to 10$/);
  await fails("I cannot say.", {}, /the judge gave no verdict: I cannot say\.$/);
  await fails(null, {}, /the judge gave no verdict: no text$/);
});

Deno.test("a judge that answers 429 is asked again", async () => {
  const busy = [new Response("busy", { status: 429, headers: { "retry-after": "3" } })];
  await withApi(() => busy.pop() ?? "[[1]]", async (url, requests) => {
    const clock = counted();
    strictEqual(await scoreByJudge(sample(), settings({ url }), clock), 1);
    deepStrictEqual(clock.slept, [3000]);
    strictEqual(requests.length, 2);
    strictEqual(await scoreByJudge(sample(), settings({ url, lowest: 0, highest: 2 }), clock), 0.5);
  });
});

Deno.test("the key is sent; a missing or refused one is found before the run starts", async () => {
  Deno.env.delete("TEST_JUDGE_KEY");
  const key_env = "TEST_JUDGE_KEY";
  const refusing = () => new Response("no", { status: 401 });
  await withApi(refusing, async (url) => {
    match((await unableToJudge({ url, key_env }))!.why, /TEST_JUDGE_KEY, which is not set here/);
    match((await unableToJudge({ url }))!.fix, /key_env/);
    Deno.env.set(key_env, "secret");
    const refused = (await unableToJudge({ url, key_env }))!;
    match(refused.why, /refuses the key \(401\)$/);
    ok(!JSON.stringify(refused).includes("secret"));
  });
  await withApi(() => "[[1]]", async (url, requests) => {
    strictEqual(await unableToJudge({ url, key_env }), null);
    await scoreByJudge(sample(), settings({ url, key_env }));
    deepStrictEqual(requests.map((one) => one.key), ["Bearer secret", "Bearer secret"]);
    strictEqual(requests[0]!.path, "/v1/models");
  });
  Deno.env.delete(key_env);
  match((await unableToJudge({ url: "http://127.0.0.1:1/v1" }))!.why, /cannot be reached/);
});

Deno.test("judge's settings are checked before anything starts", () => {
  const problem = (changes: Record<string, unknown>) =>
    RewardConfig.safeParse({
      name: "judge",
      url: "http://a/v1",
      model: "m",
      template: "{completion}",
      ...changes,
    })
      .error?.issues[0]?.message ?? null;
  strictEqual(problem({}), null);
  strictEqual(problem({ lowest: 0, highest: 1 }), null);
  const scale = "needs `verdicts`, or `lowest` below `highest`, or none of them";
  for (const changes of [{ lowest: 1 }, { highest: 1 }, { lowest: 2, highest: 1 }]) {
    strictEqual(problem(changes), scale);
  }
  strictEqual(problem({ verdicts: { a: 1 }, lowest: 0, highest: 1 }), scale);
  strictEqual(problem({ template: "{prompt}" }), "must contain {completion}");
  match(problem({ pattern: "\\d+" })!, /must have a group/);
  match(problem({ pattern: "(" })!, /RE2/);
  match(problem({ url: "a/v1" })!, /http or https/);
});

Deno.test("a row without a column of the template cannot be scored", () => {
  const config = RewardConfig.parse({
    name: "judge",
    url: "http://a/v1",
    model: "m",
    template: "{completion} {rubric} {answer}",
  });
  const check = rowCheck(config);
  strictEqual(check({ answer: "a", columns: { rubric: "r" } }), null);
  match(
    check({ answer: "a", columns: {} })!,
    /its template names \{rubric\}, which the row lacks$/,
  );
  match(check({ columns: { rubric: "r" } })!, /\{answer\}/);
  throws(() => scoringFunctions([{ ...config, when: "nobody" }]), /names no reward/);
});
