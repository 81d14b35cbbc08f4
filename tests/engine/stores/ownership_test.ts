import { deepStrictEqual, match, rejects, strictEqual } from "node:assert/strict";
import { ManualClock } from "../../../engine/clock.ts";
import type { RunOwnedError } from "../../../engine/errors.ts";
import {
  cancelRun,
  computedStatus,
  type Liveness,
  ownerAlive,
  processOwner,
  processStart,
  stillOwns,
  takeRun,
} from "../../../engine/stores/ownership.ts";
import { SqliteStore } from "../../../engine/stores/sqlite_store.ts";
import type { RunHead } from "../../../engine/stores/store.ts";
import { newOwner, newRun } from "../../contracts/store_rows.ts";

const LEASE_MS = 10_000;

async function withStore(
  body: (store: SqliteStore, clock: ManualClock) => Promise<void>,
): Promise<void> {
  const dir = await Deno.makeTempDir();
  const clock = new ManualClock();
  const store = new SqliteStore(`${dir}/holdfast.db`, { clock });
  try {
    await store.create(newRun("a"));
    await body(store, clock);
  } finally {
    await store.close();
    await Deno.remove(dir, { recursive: true });
  }
}

const see = (liveness: Liveness) => () => liveness;

Deno.test("processOwner() is this process, alive, and the same at every call", () => {
  const owner = processOwner();
  strictEqual(owner.pid, Deno.pid);
  strictEqual(ownerAlive(owner), "alive");
  deepStrictEqual(processOwner(), owner);
});

Deno.test("ownerAlive(): a reused or ended pid is dead, another host is unknown", async () => {
  strictEqual(ownerAlive({ ...processOwner(), process_start: "another boot:123" }), "dead");
  strictEqual(ownerAlive({ ...processOwner(), host: "elsewhere" }), "unknown");

  const child = new Deno.Command("sleep", { args: ["60"] }).spawn();
  const owner = { ...processOwner(), pid: child.pid, process_start: processStart(child.pid)! };
  strictEqual(ownerAlive(owner), "alive");
  child.kill("SIGSTOP"); // Stopped is not dead: it may go on.
  strictEqual(ownerAlive(owner), "alive");
  child.kill("SIGKILL");
  await child.status;
  strictEqual(ownerAlive(owner), "dead");
});

Deno.test("processStart() reads past a command name with spaces and parentheses", async () => {
  const dir = await Deno.makeTempDir();
  const odd = `${dir}/a) R 1 (b`;
  await Deno.copyFile("/bin/sleep", odd);
  const child = new Deno.Command(odd, { args: ["60"] }).spawn();
  let name = ""; // A child is there a moment before it has its own.
  for (let reads = 0; reads < 10_000 && name !== "a) R 1 (b\n"; reads++) {
    name = await Deno.readTextFile(`/proc/${child.pid}/comm`);
  }
  strictEqual(name, "a) R 1 (b\n");
  match(processStart(child.pid)!, /^[0-9a-f-]{36}:\d+$/);
  child.kill("SIGKILL");
  await child.status;
  await Deno.remove(dir, { recursive: true });
});

Deno.test("computedStatus() of an unowned unfinished run is interrupted or queued", () => {
  const clock = new ManualClock(1_000);
  const head = {
    status: "running",
    owner: newOwner("one"),
    lease_until_ms: 2_000,
    queue: null,
  } as RunHead;
  const status = (changed: Partial<RunHead>, liveness: Liveness) =>
    computedStatus({ ...head, ...changed }, { clock, alive: see(liveness) });
  strictEqual(status({}, "alive"), "running");
  // Late, not superseded: it keeps working.
  strictEqual(status({ lease_until_ms: 0 }, "alive"), "running");
  strictEqual(status({}, "dead"), "interrupted");
  strictEqual(status({}, "unknown"), "running");
  strictEqual(status({ lease_until_ms: 1_000 }, "unknown"), "interrupted");
  strictEqual(status({ owner: null }, "alive"), "interrupted");
  strictEqual(status({ status: "created", owner: null }, "alive"), "interrupted");
  strictEqual(status({ status: "failed", owner: null }, "dead"), "failed");
  strictEqual(status({ status: "created", owner: null, queue: "q" }, "alive"), "queued");
  // Given back by an engine that was stopped.
  strictEqual(status({ owner: null, queue: "q" }, "alive"), "queued");
  strictEqual(status({ queue: "q" }, "dead"), "interrupted");
});

Deno.test("takeRun() takes over from a dead engine immediately, despite a fresh lease", () =>
  withStore(async (store, clock) => {
    await store.claim("a", newOwner("one"), { lease_ms: LEASE_MS });
    const head = await takeRun(store, "a", {
      lease_ms: LEASE_MS,
      clock,
      alive: see("dead"),
      owner: newOwner("two"),
    });
    deepStrictEqual([head.epoch, head.owner?.boot_id], [2, "two"]);
  }));

for (const liveness of ["alive", "unknown"] as const) {
  Deno.test(`takeRun() waits for the lease of an engine that is ${liveness}, and names it`, () =>
    withStore(async (store, clock) => {
      await store.claim("a", newOwner("one"), { lease_ms: LEASE_MS });
      const options = { lease_ms: LEASE_MS, clock, alive: see(liveness), owner: newOwner("two") };
      await clock.advance(4_000);
      await rejects(takeRun(store, "a", options), (error: RunOwnedError) => {
        deepStrictEqual([error.code, error.facts.pid, error.facts.lease_left_ms], [
          "run_owned",
          7,
          6_000,
        ]);
        match(error.message, /engine process 7 on host owns it: its lease lasts another 6\.0 s/);
        return true;
      });
      await clock.advance(6_000);
      strictEqual((await takeRun(store, "a", options)).owner?.boot_id, "two");
    }));
}

Deno.test("takeRun(): of two that find an engine dead, one gets the run", () =>
  withStore(async (store, clock) => {
    await store.claim("a", newOwner("dead"), { lease_ms: LEASE_MS });
    const take = (name: string) =>
      takeRun(store, "a", { lease_ms: LEASE_MS, clock, alive: see("dead"), owner: newOwner(name) });
    const taken = await Promise.allSettled([take("two"), take("three")]);
    deepStrictEqual(taken.map((result) => result.status), ["fulfilled", "rejected"]);
    match(String((taken[1] as PromiseRejectedResult).reason), /RunOwnedError: Cannot take run 'a'/);
    strictEqual((await store.head("a"))?.epoch, 2);
  }));

Deno.test("takeRun() of a run that ended for good, or that does not exist, is bad input", () =>
  withStore(async (store, clock) => {
    const options = { lease_ms: LEASE_MS, clock, owner: newOwner("one") };
    await rejects(takeRun(store, "none", options), { code: "invalid_input" });
    await store.request("a", "cancel");
    await rejects(takeRun(store, "a", options), /because it has ended: status is cancelled/);
  }));

Deno.test("cancelRun() asks a living owner, and ends the run itself when the owner is dead", () =>
  withStore(async (store, clock) => {
    await store.claim("a", newOwner("one"), { lease_ms: LEASE_MS });
    const cancel = (liveness: Liveness) =>
      cancelRun(store, "a", {
        lease_ms: LEASE_MS,
        clock,
        alive: see(liveness),
        owner: newOwner("two"),
      });
    const head = await cancel("alive");
    deepStrictEqual([head.status, head.requests, head.owner?.boot_id], [
      "running",
      ["cancel"],
      "one",
    ]);
    strictEqual((await cancel("unknown")).status, "running");
    const ended = await cancel("dead");
    deepStrictEqual([ended.status, ended.owner], ["cancelled", null]);
    deepStrictEqual(await store.append("a", 1, []), { fenced: true });
  }));

Deno.test("cancelRun() goes by the store's clock, not by a fast clock of its host", () =>
  withStore(async (store, clock) => {
    await store.claim("a", newOwner("one"), { lease_ms: LEASE_MS });
    const fast = new ManualClock(clock.now() + 10 * LEASE_MS);
    const cancel = () =>
      cancelRun(store, "a", {
        lease_ms: LEASE_MS,
        clock: fast,
        alive: see("unknown"),
        owner: newOwner("two"),
      });
    const head = await cancel();
    deepStrictEqual([head.status, head.owner?.boot_id, head.epoch], ["running", "one", 1]);
    await clock.advance(LEASE_MS);
    strictEqual((await cancel()).status, "cancelled");
  }));

Deno.test("stillOwns(): until somebody else claims the run, also after it was given back", () =>
  withStore(async (store) => {
    const { head } = await store.claim("a", newOwner("one"), { lease_ms: LEASE_MS });
    strictEqual(await stillOwns(store, "a", head.epoch), true);
    await store.release("a", head.epoch);
    strictEqual(await stillOwns(store, "a", head.epoch), true);
    await store.claim("a", newOwner("two"), { lease_ms: LEASE_MS });
    strictEqual(await stillOwns(store, "a", head.epoch), false);
  }));
