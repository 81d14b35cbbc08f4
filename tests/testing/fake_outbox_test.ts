import { decode } from "@msgpack/msgpack";
import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { FakeOutbox, sendTo } from "../../testing/fake_outbox.ts";
import type { LineSocket } from "../../workers/mod.ts";

/** What is sent, in order; messages are texts, frames of blobs are bytes. */
function socket(isOpen = true): LineSocket & { sent: (string | Uint8Array)[] } {
  const sent: (string | Uint8Array)[] = [];
  return { isOpen, sent, send: (frame) => void sent.push(frame), terminate: () => {} };
}

const failed = (task: string) => ({ type: "error" as const, task, failures: [] });
const group = {
  type: "group" as const,
  group: "trainer",
  generation: 1,
  state: "ready" as const,
  ranks: [],
  info: {},
  failures: [],
};
const numbers = (outbox: FakeOutbox) => {
  const to = socket();
  outbox.sendAll(to);
  return to.sent.map((text) => JSON.parse(text as string).seq);
};

Deno.test("FakeOutbox numbers messages from 1 and keeps them until they are received", () => {
  const outbox = new FakeOutbox();
  for (const task of ["a", "b", "c"]) outbox.add(failed(task), []);
  deepStrictEqual(numbers(outbox), [1, 2, 3]);
  outbox.received(2);
  deepStrictEqual(numbers(outbox), [3]);
  deepStrictEqual([outbox.holds("b"), outbox.holds("c")], [false, true]);
  strictEqual(outbox.add(failed("d"), []).message.seq, 4);
});

Deno.test("FakeOutbox keeps groups alone for another engine, and numbers them from 1", () => {
  const outbox = new FakeOutbox();
  outbox.add(failed("a"), []);
  outbox.add(group, []);
  outbox.restart();
  const to = socket();
  outbox.sendAll(to);
  deepStrictEqual(to.sent.map((text) => JSON.parse(text as string)), [{ ...group, seq: 1 }]);
  strictEqual(outbox.add(failed("b"), []).message.seq, 2);
});

Deno.test("sendTo() sends a result's blobs before it", () => {
  const to = socket();
  const result = { type: "result" as const, task: "a", outputs: [], blobs: [] };
  sendTo(to, { message: { ...result, seq: 1 }, blobs: [Uint8Array.of(7, 8)] });
  deepStrictEqual(decode(to.sent[0] as Uint8Array), {
    task: "a",
    blob: 0,
    offset: 0,
    total: 2,
    data: Uint8Array.of(7, 8),
  });
  deepStrictEqual(JSON.parse(to.sent[1] as string), { ...result, seq: 1 });
});

Deno.test("sendTo() sends no message to a socket that is closed", () => {
  const to = socket(false);
  sendTo(to, { message: { ...group, seq: 1 }, blobs: [] });
  deepStrictEqual(to.sent, []);
});
