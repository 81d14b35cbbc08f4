import { deepStrictEqual, rejects, strictEqual } from "node:assert/strict";
import type { Caller, CallOptions, Loss, Operator } from "../../workers/mod.ts";
import { RoleWorkers } from "../../workers/role_workers.ts";
import { gate } from "./fixtures.ts";
import { Turns } from "../../workers/turns.ts";
import { trackerRole } from "./roles/tracker.ts";

const args = { map: "paris", frames: [] };

/** A tracker that holds one map. `calls`: what it was asked, in order. */
class Tracker implements Operator {
  readonly calls: string[] = [];
  #map: string | null = null;
  readonly #pid: number;
  wait: Promise<void> = Promise.resolve();
  held = false;
  loss: Loss | null = null;

  constructor(pid: number) {
    this.#pid = pid;
  }

  async call(op: string, input: unknown, _options: CallOptions) {
    this.calls.push(op);
    await this.wait;
    const { map } = input as { map: string };
    if (op === "open") this.#map = map;
    const answer = op === "open"
      ? { map }
      : this.#map === map
      ? { pid: this.#pid, seen: [] }
      : { not_resident: this.#map };
    return { outputs: [answer], blobs: [], generation: 1 };
  }

  holds(): Promise<boolean> {
    return Promise.resolve(this.held);
  }

  takeLoss(): Loss | null {
    const { loss } = this;
    this.loss = null;
    return loss;
  }
}

function bench(count: number) {
  const trackers = Array.from({ length: count }, (_, i) => new Tracker(i));
  const rows: unknown[] = [];
  const caller: Caller = {
    key: "k",
    attempt: 1,
    record: (...row) => Promise.resolve(void rows.push(row)),
  };
  const workers = new RoleWorkers(trackerRole, trackers);
  const follow = (more: Partial<Caller> = {}) =>
    workers.ask("follow", args, { ...caller, ...more }).then(({ answers }) => answers[0].pid);
  return { trackers, rows, workers, follow };
}

Deno.test("RoleWorkers rebuilds a worker that refuses, and asks it again once", async () => {
  const { trackers, follow, rows } = bench(1);
  deepStrictEqual([await follow(), await follow()], [0, 0]);
  deepStrictEqual(trackers[0]!.calls, ["follow", "open", "follow", "follow"]);
  deepStrictEqual(rows, []);
});

Deno.test("RoleWorkers gives the next operation to the worker with the fewest", async () => {
  const { trackers, follow, workers } = bench(2);
  const slow = gate();
  trackers[0]!.wait = slow.opened;
  const first = follow();
  deepStrictEqual([await follow(), await follow(), workers.count], [1, 1, 2]);
  slow.open();
  strictEqual(await first, 0);
});

Deno.test("RoleWorkers asks a busy worker that has the work from an earlier engine", async () => {
  const { trackers, follow } = bench(2);
  trackers[1]!.held = true;
  deepStrictEqual(await Promise.all([follow(), follow()]), [1, 1]);
  deepStrictEqual(trackers[0]!.calls, []);
});

Deno.test("RoleWorkers gives a worker nothing else while it is rebuilt", async () => {
  const { trackers, workers, follow } = bench(1);
  const other = workers.ask("follow", { map: "rome", frames: [] }, {
    key: "j",
    attempt: 1,
    record: () => Promise.resolve(),
  });
  await Promise.all([other, follow()]);
  const one = ["follow", "open", "follow"];
  deepStrictEqual(trackers[0]!.calls, [...one, ...one]);
});

Deno.test("RoleWorkers keeps a worker from others who share its turns", async () => {
  const tracker = new Tracker(1);
  const turns = new Turns();
  const [one, other] = [1, 2].map(() => new RoleWorkers(trackerRole, [tracker], turns));
  const slow = gate();
  const record = () => Promise.resolve();
  const held = one!.turn({ key: "k", attempt: 1, record }, () => slow.opened);
  const answer = other!.ask("follow", args, { key: "j", attempt: 1, record });
  await new Promise((resolve) => setTimeout(resolve, 0)); // A turn: it would have been called.
  deepStrictEqual(tracker.calls, []);
  slow.open();
  await held;
  strictEqual((await answer).answers[0].pid, 1);
});

Deno.test("RoleWorkers lets a caller leave that waits for its turn", async () => {
  const { trackers, follow } = bench(1);
  const slow = gate();
  trackers[0]!.wait = slow.opened;
  const first = follow();
  await rejects(follow({ signal: AbortSignal.abort(new Error("enough")) }), /^Error: enough$/);
  slow.open();
  strictEqual(await first, 0);
  strictEqual(await follow(), 0);
});

Deno.test("RoleWorkers records a loss as recovered after the next operation", async () => {
  const { trackers, follow, rows } = bench(1);
  trackers[0]!.loss = { cause: "worker_lost", seconds: 2 };
  await follow();
  await follow();
  deepStrictEqual(rows, [["recovery", "k", {
    cause: "worker_lost",
    seconds: 2,
    action: "restart",
    version: null,
    batches_redone: 0,
  }]]);
});

Deno.test("RoleWorkers names the role that the run has no worker of", async () => {
  await rejects(bench(0).follow(), /^InvalidInputError: Cannot ask a tracker because the run has/);
});
