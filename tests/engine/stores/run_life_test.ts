import { deepStrictEqual } from "node:assert/strict";
import type { Store } from "../../../engine/mod.ts";
import { endedAs, hasEnded, isUnfinished } from "../../../engine/stores/run_life.ts";
import { SqliteStore } from "../../../engine/stores/sqlite_store.ts";
import { LEASE, newOwner, newRun, started } from "../../contracts/store_rows.ts";

/** A run in each state of its life, with the epoch of whoever owns or owned it. */
const STATES: Record<string, (store: Store, run: string) => Promise<number>> = {
  created: async (store, run) => (await store.create(newRun(run))).epoch,
  owned: (store, run) => started(store, run),
  released: async (store, run) => {
    const epoch = await started(store, run);
    await store.release(run, epoch);
    return epoch;
  },
  failed: (store, run) => ended(store, { run, status: "failed" }),
  done: (store, run) => ended(store, { run, status: "done" }),
  cancelled: (store, run) => ended(store, { run, status: "cancelled" }),
};

async function ended(
  store: Store,
  { run, status }: { run: string; status: "done" | "failed" | "cancelled" },
) {
  const epoch = await started(store, run);
  await store.finish(run, epoch, status, "{}");
  return epoch;
}

const STEPS: Record<string, (store: Store, run: string, epoch: number) => Promise<unknown>> = {
  claim: (store, run) => store.claim(run, newOwner("two"), LEASE),
  cancel: (store, run) => store.request(run, "cancel"),
  drain: (store, run) => store.request(run, "drain"),
  done: (store, run, epoch) => store.finish(run, epoch, "done"),
  release: (store, run, epoch) => store.release(run, epoch),
  reopen: (store, run, epoch) => store.reopen(run, epoch),
};

/** Status, owner and open requests after each step from each state; `*`: it has an owner. */
const LIFE: Record<string, Record<keyof typeof STEPS, string>> = {
  created: {
    claim: "running*",
    cancel: "cancelled",
    drain: "created",
    done: "created",
    release: "created",
    reopen: "created",
  },
  owned: {
    claim: "running*",
    cancel: "running* cancel",
    drain: "running* drain",
    done: "done",
    release: "running",
    reopen: "running*",
  },
  released: {
    claim: "running*",
    cancel: "cancelled",
    drain: "running",
    done: "running",
    release: "running",
    reopen: "running",
  },
  failed: {
    claim: "failed*",
    cancel: "failed",
    drain: "failed",
    done: "failed",
    release: "failed",
    reopen: "failed",
  },
  done: {
    claim: "done",
    cancel: "done",
    drain: "done",
    done: "done",
    release: "done",
    reopen: "done",
  },
  cancelled: {
    claim: "cancelled",
    cancel: "cancelled",
    drain: "cancelled",
    done: "cancelled",
    release: "cancelled",
    reopen: "cancelled",
  },
};

Deno.test("the life of a run: every step from every state", async () => {
  const dir = await Deno.makeTempDir();
  const store = new SqliteStore(`${dir}/holdfast.db`);
  const found: typeof LIFE = {};
  for (const [state, reach] of Object.entries(STATES)) {
    found[state] = {};
    for (const [step, take] of Object.entries(STEPS)) {
      const run = `${state}-${step}`;
      await take(store, run, await reach(store, run));
      const { status, owner, requests } = (await store.head(run))!;
      found[state]![step] = [status + (owner ? "*" : ""), ...requests].join(" ");
    }
  }
  await store.close();
  await Deno.remove(dir, { recursive: true });
  deepStrictEqual(found, LIFE);
});

Deno.test("endedAs() is of one epoch; hasEnded() and isUnfinished() omit failed", () => {
  const head = { ...newRun("a"), epoch: 2 } as unknown as Parameters<typeof endedAs>[0];
  deepStrictEqual(endedAs({ ...head, status: "failed" }, 2), { fenced: false, status: "failed" });
  deepStrictEqual(endedAs({ ...head, status: "failed" }, 1), { fenced: true });
  deepStrictEqual(endedAs({ ...head, status: "running" }, 2), { fenced: true });
  const all = ["created", "running", "failed", "done", "cancelled"] as const;
  deepStrictEqual(all.filter((status) => hasEnded({ status })), ["done", "cancelled"]);
  deepStrictEqual(all.filter((status) => isUnfinished(status)), ["created", "running"]);
});
