import { match, rejects, strictEqual } from "node:assert/strict";
import { cancelRun } from "../../../cli/verbs/cancel.ts";
import { EXIT, isBadInput } from "../../../cli/exit.ts";
import { InvalidInputError, processOwner } from "../../../engine/mod.ts";
import { createFakeRun, freshFakeHome } from "../../runs/fake_home.ts";

const LEASE = { lease_ms: 60_000 };
const elsewhere = { boot_id: "other", host: "other-host", pid: 77, process_start: "1" };

Deno.test("cancel says what became of the run, whatever its state, and is bad input where it has ended otherwise", async () => {
  const home = await freshFakeHome();
  const { store } = home;
  for (const id of ["created", "done", "failed", "here", "there"]) await createFakeRun(home, id);
  for (const status of ["done", "failed"] as const) {
    const { head } = await store.claim(status, processOwner(), LEASE);
    await store.finish(status, head.epoch, status, "{}");
  }
  await store.claim("here", processOwner(), LEASE);
  await store.claim("there", elsewhere, LEASE);
  strictEqual(await cancelRun(home, "created"), "run created is cancelled");
  strictEqual(await cancelRun(home, "created"), "run created was cancelled already");
  match(
    await cancelRun(home, "here"),
    new RegExp(`^run here was asked to cancel; .*process ${Deno.pid} on .*\\) ends it$`),
  );
  match(
    await cancelRun(home, "there"),
    /^run there was asked to cancel; its engine \(process 77 on other-host\) ends it$/,
  );
  for (
    const [id, words] of [["done", /its status is done$/], [
      "failed",
      /status is failed\. .*resume failed/,
    ], [
      "none",
      /Cannot find run 'none'/,
    ]] as const
  ) {
    await rejects(cancelRun(home, id), (error: InvalidInputError) => {
      match(error.message, words);
      return isBadInput(error) && EXIT.bad_input === 2;
    });
  }
  strictEqual((await store.head("done"))!.status, "done");
  strictEqual((await store.head("failed"))!.status, "failed");
});
