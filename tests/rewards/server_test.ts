import { deepStrictEqual, match, strictEqual, throws } from "node:assert/strict";
import { z } from "zod";
import { ask, limited, reached, readJson, requestKey } from "../../rewards/server.ts";

/** Asks a server that is busy once, with this `Retry-After`, and returns how long it was left. */
async function waitAfter(after: string, date?: string): Promise<number | null> {
  const slept: number[] = [];
  let requests = 0;
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, () => {
    requests += 1;
    return requests > 1 ? new Response("done") : new Response("busy", {
      status: 429,
      headers: { "retry-after": after, ...(date && { date }) },
    });
  });
  const clock = { now: () => 0, sleep: (ms: number) => Promise.resolve(void slept.push(ms)) };
  const url = `http://127.0.0.1:${server.addr.port}`;
  const { signal } = new AbortController();
  strictEqual(await ask({ url, body: "{}", timeout_ms: 60_000, signal }, clock), "done");
  return slept[0] ?? null;
}

Deno.test("ask() waits as long as Retry-After says, in seconds or until a date", async () => {
  strictEqual(await waitAfter("7"), 7000);
  const date = "Wed, 21 Oct 2026 07:28:00 GMT";
  strictEqual(await waitAfter("Wed, 21 Oct 2026 07:28:09 GMT", date), 9000);
  for (const nonsense of ["", "0", "soon", "-3", "Thu, 01 Jan 1970 00:00:00 GMT"]) {
    strictEqual(await waitAfter(nonsense), 250, nonsense);
  }
});

Deno.test("a request's key depends on the address and the body", () => {
  const keys = [requestKey("a", "b"), requestKey("a", "c"), requestKey("b", "b")];
  strictEqual(new Set(keys).size, 3);
  strictEqual(requestKey("a", "b"), keys[0]);
});

Deno.test("readJson() says what an answer lacks", () => {
  const read = (text: string) =>
    readJson(text, { url: "http://a", shape: z.object({ n: z.number() }), what: "number" });
  deepStrictEqual(read('{"n":1}'), { n: 1 });
  throws(
    () => read("<html>"),
    /^Error: Cannot get a score from http:\/\/a because its answer is not JSON: <html>$/,
  );
  throws(() => read('{"n":"1"}'), /because its answer is no number: n: /);
  throws(() => read("1"), /because its answer is no number: it: /);
});

Deno.test("limited() holds each server's calls apart", async () => {
  const open = Promise.withResolvers<void>();
  const began: string[] = [];
  const call = (url: string, name: string) =>
    limited({ url, requests_max: 1 }, async () => {
      began.push(name);
      await open.promise;
    });
  const calls = [call("http://a", "a1"), call("http://a", "a2"), call("http://b", "b1")];
  await new Promise((resolve) => setImmediate(resolve));
  deepStrictEqual(began, ["a1", "b1"]);
  open.resolve();
  await Promise.all(calls);
  deepStrictEqual(began, ["a1", "b1", "a2"]);
});

Deno.test("reached() returns a status, or why there is none", async () => {
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    () => new Response(null, { status: 404 }),
  );
  const url = `http://127.0.0.1:${server.addr.port}`;
  deepStrictEqual(await reached(url, { method: "HEAD" }), { status: 404 });
  await server.shutdown();
  match(String((await reached(url, {}) as { why: string }).why), /refused/);
});
