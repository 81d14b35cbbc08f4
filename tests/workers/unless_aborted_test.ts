import { rejects, strictEqual } from "node:assert/strict";
import { unlessAborted } from "../../workers/unless_aborted.ts";

const never = new Promise<string>(() => {});

Deno.test("unlessAborted() is the promise's outcome without a signal or before it", async () => {
  const { signal } = new AbortController();
  strictEqual(await unlessAborted(Promise.resolve("done"), undefined), "done");
  strictEqual(await unlessAborted(Promise.resolve("done"), signal), "done");
  await rejects(unlessAborted(Promise.reject(new Error("no")), signal), /^Error: no$/);
});

Deno.test("unlessAborted() rejects with the signal's reason", async () => {
  const stop = new AbortController();
  const waiting = unlessAborted(never, stop.signal);
  stop.abort(new Error("enough"));
  await rejects(waiting, /^Error: enough$/);
});

Deno.test("unlessAborted() rejects immediately if the signal was aborted before", async () => {
  const signal = AbortSignal.abort(new Error("enough"));
  await rejects(unlessAborted(Promise.resolve("done"), signal), /^Error: enough$/);
});

Deno.test("unlessAborted() leaves no listener on a signal that outlives the promise", async () => {
  const { signal } = new AbortController();
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => (listeners++, add(...args));
  signal.removeEventListener = (...args: Parameters<typeof remove>) => {
    listeners--;
    remove(...args);
  };
  const promise = unlessAborted(Promise.resolve("done"), signal);
  strictEqual(listeners, 1);
  await promise.finally(() => undefined);
  strictEqual(listeners, 0);
});
