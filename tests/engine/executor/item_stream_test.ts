import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import { inOrder, ItemStream, type Order } from "../../../engine/executor/item_stream.ts";

Deno.test("ItemStream.list() is the values by their order, however they arrive", async () => {
  const order = fc.array(fc.nat(5), { minLength: 1, maxLength: 3 });
  const orders = fc.uniqueArray(order, { selector: String, maxLength: 12 });
  const lists = orders.chain((all) =>
    fc.tuple(fc.constant(all), fc.shuffledSubarray(all, { minLength: all.length }))
  );
  await fc.assert(
    fc.asyncProperty(lists, async ([all, arriving]) => {
      const stream = new ItemStream();
      const list = stream.list();
      for (const one of arriving) stream.push(one, one);
      stream.end();
      // Padded, an order sorts as text: what is shorter comes first.
      const text = (one: Order) => [0, 1, 2].map((level) => (one[level] ?? -1) + 1).join("");
      deepStrictEqual(await list, all.toSorted((a, b) => text(a) < text(b) ? -1 : 1));
    }),
    { numRuns: 50 },
  );
});

Deno.test("inOrder() compares numbers, level by level", () => {
  const items = [[10], [2, 1], [2], [2, 0, 9]].map((order) => ({ order, value: order.join(".") }));
  deepStrictEqual(inOrder(items), ["2", "2.0.9", "2.1", "10"]);
});

Deno.test("ItemStream.subscribe() hears what came before it, then what comes", () => {
  const stream = new ItemStream();
  const heard: unknown[] = [];
  stream.push([0], "early");
  stream.subscribe({
    item: (order, value) => heard.push([...order, value]),
    end: (error) => heard.push(error),
  });
  stream.push([1], "late");
  strictEqual(stream.ended, false);
  stream.end();
  deepStrictEqual(heard, [[0, "early"], [1, "late"], undefined]);
});

Deno.test("ItemStream: nothing comes after the end, and the first end counts", async () => {
  const stream = new ItemStream();
  stream.push([0], "kept");
  stream.end();
  stream.push([1], "too late");
  stream.end(new Error("too late"));
  strictEqual(stream.ended, true);
  deepStrictEqual(await stream.list(), ["kept"]);
});

Deno.test("ItemStream.list() rejects with the error that ended the stream", async () => {
  const stream = new ItemStream();
  stream.push([0], 1);
  stream.end(new Error("a stage failed"));
  await rejects(stream.list(), /^Error: a stage failed$/);
});

Deno.test("ItemStream.of() streams a list, and rejects what is not one", async () => {
  deepStrictEqual(await ItemStream.of(Promise.resolve(["a", "b"])).list(), ["a", "b"]);
  await rejects(ItemStream.of(Promise.resolve("ab")).list(), {
    name: "TypeError",
    message: "Cannot map over a value that is not a list but string",
  });
  await rejects(ItemStream.of(Promise.reject(new Error("lost"))).list(), /^Error: lost$/);
});
