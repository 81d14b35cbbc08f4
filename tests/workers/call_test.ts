import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { type CallOptions, callOptions } from "../../workers/mod.ts";

/** As a stage's context: its options are on the prototype. */
class Context {
  readonly #events: string[] = [];
  get key() {
    return "round/1/train";
  }
  get attempt() {
    return 2;
  }
  get timeout_ms() {
    return 7;
  }
  recorded(): Promise<void> {
    return Promise.resolve(void this.#events.push("recorded"));
  }
  durable(): Promise<void> {
    return Promise.resolve(void this.#events.push("durable"));
  }
  get events() {
    return this.#events;
  }
}

Deno.test("callOptions() keeps options that an object has on its prototype", () => {
  const { key, attempt, timeout_ms } = { ...callOptions(new Context()) };
  deepStrictEqual([key, attempt, timeout_ms], ["round/1/train", 2, 7]);
});

Deno.test("callOptions() calls methods on the object that they belong to", async () => {
  const context = new Context();
  const { recorded, durable } = { ...callOptions(context) };
  await durable!();
  await recorded!();
  deepStrictEqual(context.events, ["durable", "recorded"]);
});

Deno.test("callOptions() has no method that the caller lacks", () => {
  const { recorded, durable } = callOptions({ key: "k", attempt: 1 });
  deepStrictEqual([recorded, durable], [undefined, undefined]);
});

Deno.test("callOptions() passes the signal and the progress on", () => {
  const seen: unknown[] = [];
  const { signal } = new AbortController();
  const onProgress: CallOptions["onProgress"] = (progress) => seen.push(progress.done);
  const options = callOptions({ key: "k", attempt: 1, signal, onProgress, since_attempt: 1 });
  options.onProgress!({ rank: 0, phase: "step", done: 3, total: 4, metrics: {} });
  strictEqual(options.signal, signal);
  deepStrictEqual([seen, options.since_attempt], [[3], 1]);
});
