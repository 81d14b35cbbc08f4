import { match, strictEqual } from "node:assert/strict";
import { ServeTeller } from "../../../cli/display/serve_teller.ts";
import { BadDataError } from "../../../engine/mod.ts";
import { createFakeRun, executeFake, freshFakeHome } from "../../runs/fake_home.ts";

// Fake completions are never the answer: every group is all zeros.
const ALL_ALIKE = [{ name: "exact_match" }];

Deno.test("serve says of a run that failed what run says: how to resume it, and the fork that helps", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 2 });
  await executeFake(home, "a");
  const lines: string[] = [];
  const teller = new ServeTeller(home, (text) => lines.push(...text.split("\n")));
  const error = new BadDataError("Cannot pack. Fix: set trainer.packing: true").toJSON();
  teller.on({ type: "ended", run: "a", status: "failed", error });
  await teller.printed();
  strictEqual(lines[0], "a  failed: Cannot pack. Fix: set trainer.packing: true");
  match(lines[1]!, /^a {2}Nothing recorded is lost.* resume with: deno task rl resume a --home/);
  match(
    lines[2]!,
    /^a {2}.*a fork can: deno task rl fork a --round 2 trainer\.packing=true --home/,
  );
});

Deno.test("serve says of a run that trained nothing that it did not", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1, reward: ALL_ALIKE });
  await executeFake(home, "a");
  const lines: string[] = [];
  const teller = new ServeTeller(home, (text) => lines.push(...text.split("\n")));
  teller.on({ type: "ended", run: "a", status: "done" });
  await teller.printed();
  strictEqual(lines[0], "a  done");
  match(lines[1]!, /^a {2}WARNING: run a trained nothing/);
});

Deno.test("serve advises nothing for a run that another engine has, or that was cancelled, whatever it failed of here", async () => {
  const home = await freshFakeHome();
  await createFakeRun(home, "a", { rounds: 1 });
  const error = new BadDataError("Cannot pack").toJSON();
  for (const status of ["fenced", "cancelled"] as const) {
    const lines: string[] = [];
    const teller = new ServeTeller(home, (text) => lines.push(text));
    teller.on({ type: "ended", run: "a", status, error });
    await teller.printed();
    strictEqual(lines.length, 1);
    match(lines[0]!, /^a {2}(cancelled|taken over by another engine)/);
  }
});
