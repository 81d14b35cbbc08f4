import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import fc from "fast-check";
import type { Liveness } from "../../../engine/stores/ownership.ts";
import {
  type Choice,
  chooseRun,
  isQueued,
  type QueueOptions,
  queueOrder,
} from "../../../engine/queue/queue.ts";
import type { Owner, RunHead } from "../../../engine/stores/store.ts";
import { newRun } from "../../contracts/store_rows.ts";

const NOW = 10_000_000;
const AGEING = 1000;

function owner(boot_id: string, host = "here"): Owner {
  return { boot_id, host, pid: 1, process_start: "s" };
}

function head(id: string, changes: Partial<RunHead> = {}): RunHead {
  return {
    ...newRun(id),
    status: changes.owner ? "running" : "created",
    epoch: 0,
    last_seq: 0,
    owner: null,
    lease_until_ms: changes.owner ? NOW + 1 : 0,
    requests: [],
    error: null,
    created_ms: NOW,
    updated_ms: NOW,
    queue: "q",
    priority: 0,
    needs: {},
    parent: null,
    home: null,
    journal: 1,
    ...changes,
  };
}

const ME = owner("me");

function options(changes: Partial<QueueOptions> = {}): QueueOptions {
  return {
    owner: ME,
    queues: { q: Infinity },
    slots: { gpu: 4 },
    ageing_ms: AGEING,
    executing: new Set(),
    canRun: () => true,
    alive: (): Liveness => "alive",
    ...changes,
  };
}

function chosen(runs: RunHead[], changes: Partial<QueueOptions> = {}): Choice | null {
  return chooseRun(runs, options(changes), NOW);
}

Deno.test("chooseRun() takes the highest priority, then the oldest, then the least id", () => {
  const runs = [
    head("b"),
    head("a"),
    head("old", { created_ms: NOW - 5 }),
    head("urgent", { priority: 1 }),
  ];
  const order: string[] = [];
  while (runs.length > 0) {
    const { run } = chosen(runs)!;
    order.push(run);
    runs.splice(runs.findIndex(({ id }) => id === run), 1);
  }
  deepStrictEqual(order, ["urgent", "old", "a", "b"]);
});

Deno.test("chooseRun() skips runs without a queue, of other queues and other graphs", () => {
  strictEqual(chosen([head("a", { queue: null }), head("b", { queue: "other" })]), null);
  strictEqual(chosen([head("a")], { canRun: () => false }), null);
});

Deno.test("chooseRun() takes lost engines' runs first, and never a living one's", () => {
  const alive = ({ boot_id }: Owner): Liveness =>
    boot_id === "dead" ? "dead" : boot_id === "far" ? "unknown" : "alive";
  const fresh = head("fresh", { priority: 99 });
  deepStrictEqual(chosen([fresh, head("a", { owner: owner("dead") })], { alive }), {
    run: "a",
    force: true,
  });
  const expired = { lease_until_ms: NOW };
  deepStrictEqual(chosen([fresh, head("a", { owner: owner("frozen"), ...expired })], { alive }), {
    run: "a",
    force: false,
  });
  strictEqual(chosen([head("a", { owner: owner("far") })], { alive }), null);
  deepStrictEqual(chosen([head("a", { owner: owner("far"), ...expired })], { alive }), {
    run: "a",
    force: false,
  });
  // Its own, which it does not execute: a run that it had to let go without the store.
  deepStrictEqual(chosen([head("a", { owner: ME })]), { run: "a", force: false });
  strictEqual(chosen([head("a", { owner: ME })], { executing: new Set(["a"]) }), null);
});

Deno.test("chooseRun() counts places over all hosts, and slots over a host's engines", () => {
  const elsewhere = head("elsewhere", { owner: owner("other", "there"), needs: { gpu: 4 } });
  const beside = head("beside", { owner: owner("other"), needs: { gpu: 3 }, queue: null });
  const two = head("two", { needs: { gpu: 2 } });
  strictEqual(chosen([elsewhere, two])?.run, "two");
  strictEqual(chosen([beside, two]), null);
  strictEqual(chosen([beside, two, head("one", { needs: { gpu: 1 } })])?.run, "one");
  strictEqual(chosen([elsewhere, head("a")], { queues: { q: 1 } }), null);
  strictEqual(chosen([elsewhere, head("a")], { queues: { q: 2 } })?.run, "a");
});

Deno.test("chooseRun() keeps slots free for a large run that has waited long", () => {
  const busy = head("busy", { owner: owner("other"), needs: { gpu: 2 } });
  const small = head("small", { needs: { gpu: 1 } });
  const large = (age: number, gpu = 4) => head("large", { needs: { gpu }, created_ms: NOW - age });
  strictEqual(chosen([busy, small, large(AGEING - 1)])?.run, "small");
  strictEqual(chosen([busy, small, large(AGEING)]), null);
  strictEqual(chosen([busy, small, large(AGEING, 5)])?.run, "small");
  strictEqual(chosen([busy, head("none"), large(AGEING)])?.run, "none");
  strictEqual(chosen([small, large(AGEING)])?.run, "large");
});

Deno.test("isQueued(): unfinished, in a queue, and nobody's", () => {
  deepStrictEqual(
    [
      head("a"),
      head("a", { queue: null }),
      head("a", { owner: ME }),
      head("a", { status: "cancelled" }),
    ].map(isQueued),
    [true, false, false, false],
  );
});

const anyRun = (i: number) =>
  fc.record({
    queue: fc.constantFrom("q", "r", "other", null),
    priority: fc.integer({ min: -2, max: 2 }),
    gpu: fc.integer({ min: 0, max: 5 }),
    age: fc.integer({ min: 0, max: 4 * AGEING }),
    by: fc.constantFrom(null, "me", "dead", "late", "here", "there"),
  }).map(({ queue, priority, gpu, age, by }) =>
    head(`run${i}`, {
      queue,
      priority,
      needs: gpu > 0 ? { gpu } : {},
      created_ms: NOW - age,
      owner: by === null ? null : owner(by, by === "there" ? "there" : "here"),
      lease_until_ms: by === "late" ? NOW - 1 : NOW + 1,
    })
  );
const anyRuns = fc.integer({ min: 0, max: 12 }).chain((n) =>
  fc.tuple(...Array.from({ length: n }, (_, i) => anyRun(i)))
);
const QUEUES = { q: 3, r: 1 };
const alive = ({ boot_id }: Owner): Liveness => boot_id === "dead" ? "dead" : "alive";

Deno.test("chooseRun() never exceeds slots or places, whatever the rows' order", () => {
  fc.assert(
    fc.property(anyRuns, fc.infiniteStream(fc.nat()), (runs, random) => {
      const changes = {
        queues: QUEUES,
        alive,
        executing: new Set(runs.filter((r) => r.owner?.boot_id === "me").map((r) => r.id)),
      };
      const choice = chosen(runs, changes);
      const shuffled = runs.map((run) => ({ run, key: random.next().value })).sort((a, b) =>
        a.key - b.key
      );
      deepStrictEqual(chosen(shuffled.map(({ run }) => run), changes), choice);
      if (choice === null) return;
      const taken = runs.find(({ id }) => id === choice.run)!;
      const lost = (run: RunHead) => run.owner?.boot_id === "dead" || run.owner?.boot_id === "late";
      const running = runs.filter((run) => run !== taken && run.owner !== null && !lost(run));
      const used = running.filter((run) => run.owner!.host === "here").reduce(
        (sum, run) => sum + (run.needs.gpu ?? 0),
        0,
      );
      const gpu = taken.needs.gpu ?? 0;
      ok(gpu === 0 || used + gpu <= 4);
      const beside = running.filter((run) => run.queue === taken.queue).length;
      ok(beside + 1 <= QUEUES[taken.queue as "q" | "r"]);
      strictEqual(choice.force, taken.owner?.boot_id === "dead");
    }),
    { numRuns: 500 },
  );
});

Deno.test("queueOrder(): a run that waits rises by one priority for every ageing_ms", () => {
  const waits = head("waits", { created_ms: NOW - 3 * AGEING });
  const order = (priority: number) =>
    queueOrder([waits, head("urgent", { priority })], AGEING, NOW).map(({ id }) => id).join(" ");
  strictEqual(order(4), "urgent waits");
  strictEqual(order(3), "waits urgent");
});

Deno.test("chooseRun(): no run starves, whatever keeps arriving", () => {
  const arrival = fc.record({
    gpu: fc.integer({ min: 1, max: 4 }),
    ticks: fc.integer({ min: 1, max: 5 }),
    priority: fc.integer({ min: 0, max: 2 }),
  });
  fc.assert(
    fc.property(fc.array(arrival, { minLength: 1, maxLength: 5 }), (kinds) => {
      const TICK = AGEING / 10;
      const runs = [head("gang", { created_ms: NOW, needs: { gpu: 4 } })];
      const ends = new Map<string, number>();
      for (let tick = 0; tick < 3000; tick++) {
        const now = NOW + tick * TICK;
        const kind = kinds[tick % kinds.length]!;
        // As much work arrives as the host can do, so that there is always something smaller to
        // take.
        if (tick % Math.ceil(kind.ticks * kind.gpu / 4) === 0) {
          runs.push(
            head(`r${tick}`, {
              created_ms: now,
              needs: { gpu: kind.gpu },
              priority: kind.priority,
            }),
          );
          ends.set(`r${tick}`, kind.ticks);
        }
        for (const [i, run] of [...runs.entries()].reverse()) {
          if (run.owner && run.lease_until_ms <= now) runs.splice(i, 1);
        }
        for (;;) {
          const executing = new Set(runs.filter((run) => run.owner).map(({ id }) => id));
          const choice = chooseRun(runs, options({ executing }), now);
          if (choice === null) break;
          if (choice.run === "gang") return;
          const run = runs.find(({ id }) => id === choice.run)!;
          Object.assign(run, { owner: ME, lease_until_ms: now + ends.get(run.id)! * TICK });
        }
      }
      throw new Error("the gang of four never started");
    }),
    { numRuns: 50 },
  );
});
