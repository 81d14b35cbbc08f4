/** The engines that the quickstart does not start, in a whole run of its small configuration. */
import { deepStrictEqual, ok, strictEqual } from "node:assert/strict";
import { at, orphans, recorded, rl, show, SMALL, withFreshHome } from "../crash/runs.ts";

const SHORT = ["warmup.rounds=2", "online.rounds=2", "workers.grace_s=1"];
const TRAINER = ["trainer.engine=deepspeed", "trainer.ranks=2", "trainer.zero=3"];
const SAMPLER = ["sampler.engine=vllm", "sampler.vllm={ enforce_eager: true }"];

Deno.test("two DeepSpeed ranks under ZeRO-3 train what vLLM samples: one is killed in a step, the run redoes it bit for bit, and every policy is proven", async () => {
  await withFreshHome(async (home) => {
    const place = { home, store: null };
    const { code, output } = await rl(
      ["run", SMALL, ...SHORT, ...TRAINER, ...SAMPLER, ...at(place), "--id", "e"],
      { HOLDFAST_FAULT: "kill:trainer.1@micro_batch:6" },
    );
    strictEqual(code, 0, output);
    const { status, recoveries, ledger, metrics } = await show(home, "e");
    deepStrictEqual(
      recoveries.map(({ cause, batches_redone }) => [cause, batches_redone > 0]),
      [["worker_lost", true]],
    );
    deepStrictEqual([status, ledger.read, ledger.pending], ["done", 16, 0]);
    const mismatch = metrics["policy/mismatch_abs"]!;
    ok(mismatch < 1e-5, `log-probabilities of sampler and trainer differ by ${mismatch}`);
    const published = (await recorded(place, "e")).rows
      .filter(({ kind }) => kind === "note/publication")
      .map(({ key, value }) => [key, JSON.parse(value).proofs[0].probe_sha256] as const);
    const probes = new Map(published);
    // The policy before the online rounds, and the one after each.
    deepStrictEqual([probes.size, new Set(probes.values()).size], [3, 3]);
    strictEqual(await orphans(home), 0);
  });
});
