import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { FakeWorkers } from "../../testing/mod.ts";

const call = (key: string, signal = new AbortController().signal) => ({ key, signal });

Deno.test("FakeWorkers: a task waits until the test finishes or fails it", async () => {
  const workers = new FakeWorkers();
  const [a, b] = [workers.run(call("a"), 1), workers.run(call("b"), 2)];
  strictEqual((await workers.task("a")).input, 1);
  workers.open.get("b")!.fail(new Error("broken"));
  workers.open.get("a")!.finish("done");
  strictEqual(await a, "done");
  await rejects(b, /broken/);
  deepStrictEqual([workers.started, workers.finished], [["a", "b"], ["b", "a"]]);
  deepStrictEqual([workers.open.size, workers.open_max], [0, 2]);
});

Deno.test("FakeWorkers: with an answer no task waits", async () => {
  const workers = new FakeWorkers(({ input }) => (input as number) * 2);
  strictEqual(await workers.run(call("a"), 21), 42);
  strictEqual(workers.open.size, 0);
});

Deno.test("FakeWorkers: an aborted task ends with the signal's reason", async () => {
  const workers = new FakeWorkers();
  const controller = new AbortController();
  const task = workers.run(call("a", controller.signal), null);
  controller.abort(new Error("cancelled"));
  await rejects(task, /cancelled/);
  deepStrictEqual(workers.finished, ["a"]);
});

Deno.test("FakeWorkers: task() waits for a task that was not started yet", async () => {
  const workers = new FakeWorkers();
  const found = workers.task("late");
  const ran = workers.run(call("late"), null);
  (await found).finish(5);
  strictEqual(await ran, 5);
});
