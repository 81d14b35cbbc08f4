import { rejects, strictEqual } from "node:assert/strict";
import { ManualClock, processOwner } from "../../../engine/mod.ts";
import { findRun, newestRun } from "../../../runs/mod.ts";
import { MemoryStore } from "../../../testing/mod.ts";
import { createFakeRun, freshFakeHome } from "../fake_home.ts";

Deno.test("findRun() gives the named run, or suggests a similar name", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "storm");
  strictEqual((await findRun(home, "storm")).id, "storm");
  await rejects(findRun(home, "strom"), /Cannot find run 'strom' in .*storm/);
});

Deno.test("findRun() without a name gives the newest resumable run", async () => {
  const clock = new ManualClock();
  const store = new MemoryStore({ clock });
  const home = await freshFakeHome(store);
  await rejects(newestRun(home), /Cannot show a run/);
  const create = async (id: string, end: "done" | "failed") => {
    clock.jump(1000);
    await createFakeRun(home, id);
    const { head } = await store.claim(id, processOwner(), { lease_ms: 1000 });
    await store.finish(id, head.epoch, end, "{}");
  };
  await create("done", "done");
  await rejects(findRun(home, undefined), /Cannot resume/);
  await create("failed", "failed");
  await create("failed_later", "failed");
  await create("done_last", "done");
  strictEqual((await findRun(home, undefined)).id, "failed_later");
  strictEqual(await newestRun(home), "done_last");
});
