/** Groups whose prompt is computed once, on real workers: what a run of them survives. */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { at, rl, show, withFreshHome } from "../crash/runs.ts";

/**
 * Two passes over each batch, so that log-probabilities are scored packed, too; no checkpoint
 * before the end.
 */
const PACKED = [
  "configs/quickstart_small.yaml",
  "trainer.packing=true",
  "trainer.epochs_per_batch=2",
  "online.rounds=3",
  "warmup.rounds=2",
  "evaluate.problems=4",
  "checkpoints.every_rounds=3",
];

Deno.test("a run with packed groups whose trainer and then engine are killed ends with the bits of a calm one, and verifies", async () => {
  await withFreshHome(async (home) => {
    const place = at({ home, store: null });
    const calm = await rl(["run", ...PACKED, "--id", "calm", ...place], {});
    strictEqual(calm.code, 0, calm.output);
    const fault = { HOLDFAST_FAULT: "kill:trainer@micro_batch:5,kill:engine@append:38" };
    const killed = await rl(["run", ...PACKED, "--id", "killed", ...place], fault);
    strictEqual(killed.signal, "SIGKILL", killed.output);
    const resumed = await rl(["resume", "killed", ...place], {});
    strictEqual(resumed.code, 0, resumed.output);
    const [expected, found] = [await show(home, "calm"), await show(home, "killed")];
    deepStrictEqual([found.policy, found.ledger], [expected.policy, expected.ledger]);
    ok(
      found.recoveries.some(({ cause }) => cause === "worker_lost"),
      JSON.stringify(found.recoveries),
    );
    const verified = await rl(["verify", "killed", ...place], {});
    strictEqual(verified.code, 0, verified.output);
  });
});
