import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import { CancelledError, type EngineError, ManualClock } from "../../../engine/mod.ts";
import type { GroupLine } from "../../../workers/fleet/group_line.ts";
import { OpenTasks } from "../../../workers/fleet/open_tasks.ts";
import type { AgentMessage, CallOptions, HeldTask } from "../../../workers/mod.ts";

const KEY = { key: "k", attempt: 1 };
const TRAIN = { op: "train", key: "k", args_hash: "h" };

function bench(owned = true) {
  const clock = new ManualClock();
  const log: unknown[] = [];
  const link: GroupLine = {
    interface: null,
    parts: null,
    blobs: { take: () => [] },
    send: (message) => void log.push("task" in message ? [message.type, message.task] : message),
    release: (task) => void log.push(["release", task]),
    forget: () => {},
  };
  const hung: EngineError[] = [];
  const gang = { spec: { group: "trainer", role: "trainer" }, generation: 2, ranks: [] };
  const tasks = new OpenTasks(gang, {
    run: "r",
    epoch: 5,
    clock,
    log_dir: "/l",
    owns: () => Promise.resolve(owned),
    onHung: (error) => hung.push(error),
    onOver: (running) => log.push(["over", running.task]),
  });
  const send = (options: CallOptions = KEY) =>
    tasks.send(TRAIN, { args: { json: "null" }, link, options });
  return { clock, log, link, hung, tasks, send };
}

const result = (task: string): Extract<AgentMessage, { type: "result" }> => ({
  type: "result",
  seq: 1,
  task,
  blobs: [],
  outputs: [{ json: "7" }],
});
const held = (fields: Partial<HeldTask> = {}): HeldTask => ({
  task: "old",
  group: "trainer",
  generation: 2,
  key: "k",
  attempt: 1,
  epoch: 4,
  op: "train",
  args_hash: "h",
  cancelled: false,
  state: "running",
  ...fields,
});

Deno.test("OpenTasks numbers tasks by group, generation, epoch and count", () => {
  const { tasks, send } = bench();
  deepStrictEqual([send().task, send().task], ["trainer/g2/t5.1", "trainer/g2/t5.2"]);
  strictEqual(tasks.running?.task, "trainer/g2/t5.2");
});

Deno.test("OpenTasks: an answer frees the ranks and is released once received", async () => {
  const { tasks, send, log } = bench();
  const running = send();
  const answer = tasks.answer(running, KEY);
  tasks.resolve(running, result(running.task));
  deepStrictEqual((await answer).outputs, [7]);
  deepStrictEqual([tasks.running, tasks.find(running.task)], [null, undefined]);
  await running.over.promise;
  deepStrictEqual(log, [["task", running.task], ["over", running.task], ["release", running.task]]);
});

Deno.test("OpenTasks keeps an answer with the agent until its work is recorded", async () => {
  const { tasks, send, log } = bench();
  const recorded = Promise.withResolvers<void>();
  const options = { ...KEY, recorded: () => recorded.promise };
  const running = send(options);
  const answer = tasks.answer(running, options);
  tasks.resolve(running, result(running.task));
  await answer;
  deepStrictEqual(log.at(-1), ["over", running.task]);
  recorded.resolve();
  await recorded.promise;
  deepStrictEqual(log.at(-1), ["release", running.task]);
});

Deno.test("OpenTasks gives an earlier engine's work to the call that is the same", () => {
  const { tasks, link } = bench();
  tasks.inherit([held()], link);
  strictEqual(tasks.holds({ ...TRAIN, args_hash: "other" }, KEY), false);
  strictEqual(tasks.take({ ...TRAIN, op: "score" }, KEY), null);
  strictEqual(tasks.holds(TRAIN, KEY), true);
  strictEqual(tasks.take(TRAIN, KEY)?.task, "old");
  strictEqual(tasks.take(TRAIN, KEY), null);
  strictEqual(tasks.running?.task, "old");
});

Deno.test("OpenTasks releases the work of an attempt that has ended", () => {
  const { tasks, link, log } = bench();
  tasks.inherit([held({ state: "finished" })], link);
  strictEqual(tasks.take(TRAIN, { ...KEY, attempt: 2 }), null);
  deepStrictEqual(log, [["release", "old"]]);
});

for (const owned of [true, false]) {
  const name = owned ? "cancels on the ranks" : "sends nothing if another engine has the run";
  Deno.test(`OpenTasks: a caller that leaves ${name}`, async () => {
    const { tasks, send, log } = bench(owned);
    const stop = new AbortController();
    const running = send();
    const answer = tasks.answer(running, { ...KEY, signal: stop.signal });
    stop.abort(new CancelledError("enough"));
    await rejects(answer, /enough/);
    await Promise.resolve(); // `owns` has answered.
    const cancelled = log.filter((entry) => Array.isArray(entry) && entry[0] === "cancel");
    deepStrictEqual(cancelled, owned ? [["cancel", running.task]] : []);
  });
}

Deno.test("OpenTasks reports ranks that hold a cancelled operation for 8 s", async () => {
  const { tasks, send, clock, hung } = bench();
  const stop = new AbortController();
  const answer = tasks.answer(send(), { ...KEY, signal: stop.signal });
  stop.abort(new CancelledError("enough"));
  await rejects(answer, /enough/);
  await clock.advance(7999);
  deepStrictEqual(hung, []);
  await clock.advance(1);
  deepStrictEqual(hung.map(({ code }) => code), ["timeout"]);
});

Deno.test("OpenTasks.close() fails everything, and forgets what was inherited", async () => {
  const { tasks, link, send } = bench();
  tasks.inherit([held({ state: "finished" })], link);
  const running = send();
  const answer = tasks.answer(running, KEY);
  tasks.close(new CancelledError("gone"));
  await rejects(answer, /gone/);
  deepStrictEqual([tasks.running, tasks.holds(TRAIN, KEY)], [null, false]);
});
