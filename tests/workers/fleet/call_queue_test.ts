import { deepStrictEqual, throws } from "node:assert/strict";
import { CallQueue } from "../../../workers/fleet/call_queue.ts";

const CALL = { op: "train", group: "trainer" };

Deno.test("CallQueue: turns begin in the order they were joined", async () => {
  const queue = new CallQueue();
  const order: number[] = [];
  const turns = [1, 2, 3].map((n) => {
    const turn = queue.join(CALL);
    return turn.begins.then(() => {
      order.push(n);
      turn.end(undefined);
    });
  });
  await Promise.all(turns);
  deepStrictEqual(order, [1, 2, 3]);
});

Deno.test("CallQueue: the next turn waits until the ranks are free", async () => {
  const queue = new CallQueue();
  const events: string[] = [];
  const free = Promise.withResolvers<void>();
  queue.join(CALL).end(free.promise.then(() => void events.push("free")));
  const next = queue.join(CALL).begins.then(() => void events.push("next"));
  free.resolve();
  await next;
  deepStrictEqual(events, ["free", "next"]);
});

Deno.test("CallQueue: a turn that ends early does not overtake the ones before it", async () => {
  const queue = new CallQueue();
  const events: string[] = [];
  const first = queue.join(CALL);
  queue.join(CALL).end(undefined); // Its caller left.
  const third = queue.join(CALL).begins.then(() => void events.push("third"));
  const over = Promise.resolve().then(() => void events.push("first"));
  first.end(over);
  await third;
  deepStrictEqual(events, ["first", "third"]);
});

Deno.test("CallQueue refuses the 65th waiting call, and accepts one after a turn ended", () => {
  const queue = new CallQueue();
  const turns = Array.from({ length: 64 }, () => queue.join(CALL));
  throws(() => queue.join(CALL), {
    code: "infrastructure",
    message: "Cannot queue 'train' on trainer because 64 calls wait: the limit is 64",
  });
  turns.at(-1)!.end(undefined);
  queue.join(CALL);
  throws(() => queue.join(CALL), /64 calls wait/);
});
