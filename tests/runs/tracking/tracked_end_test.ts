import { deepStrictEqual, match } from "node:assert/strict";
import { trackedEnd } from "../../../runs/tracking/tracked_end.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../fake_home.ts";

Deno.test("trackedEnd() is what is recorded: a card only of what is done", async () => {
  const home = await freshFakeHome();
  const head = await createFakeRun(home, "a", { rounds: 1 });
  deepStrictEqual(await trackedEnd(home, head), { status: "interrupted", card: null });
  await executeFake(home, "a");
  const { status, card } = await trackedEnd(home, head);
  deepStrictEqual(status, "done");
  match(card!, /^Made by run `a` of Holdfast\.$/m);
  await createFakeRun(home, "b");
  await home.store.request("b", "cancel");
  deepStrictEqual(await trackedEnd(home, { id: "b" }), { status: "cancelled", card: null });
});
