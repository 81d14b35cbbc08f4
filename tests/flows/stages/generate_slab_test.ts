import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { WorkerLostError } from "../../../engine/mod.ts";
import { online } from "../../../flows/online.ts";
import { type FakeHook, FakeSampler } from "../../../testing/mod.ts";
import { execute, onlineConfig, stores } from "../fixtures.ts";

const PROMPTS = 4;
const ROUNDS = 3;

/**
 * A run with two samplers and one group to a slab: its last version, how often each draw was made,
 * and what failed.
 */
async function run(hooks: [FakeHook?, FakeHook?]) {
  const generated = Array<number>(ROUNDS * PROMPTS).fill(0);
  const complete = ({ draw, sample }: { draw: number; sample: number }) => {
    if (sample === 0) generated[draw]! += 1;
    return "1".repeat(1 + (draw * 3 + sample) % 8);
  };
  const samplers = [hooks[0], hooks[1]].map((hook) => new FakeSampler({ complete, hook }));
  const { store, artifacts, dir, model } = await stores();
  const config = onlineConfig(model, {
    prompts_per_round: PROMPTS,
    rounds: ROUNDS,
    sampler: { replicas: 2 },
  });
  const engine = { slots: { sampler: 2 }, backoff: { first_ms: 0, max_ms: 0 } };
  const { outcome } = await execute(online, config, { store, artifacts, dir, samplers, engine });
  strictEqual(outcome.status, "done");
  const rows = (kind: string) => store.rows("run").filter((row) => row.kind === kind);
  const loads = samplers.map(({ calls }) => calls.filter(({ op }) => op === "load").length);
  return {
    generated: generated,
    loads,
    version: rows("note/version").at(-1)!.key,
    failed: rows("failure").map(({ key }) => key),
  };
}

Deno.test("a lost sampler costs only the slab in flight on it", async () => {
  const undisturbed = await run([]);
  deepStrictEqual(undisturbed.generated, Array(ROUNDS * PROMPTS).fill(1));
  const lost = Promise.withResolvers<void>();
  let draw = -1;
  const dies: FakeHook = ({ op, args }, moment) => {
    if (op !== "generate" || moment !== "done" || draw >= 0) return;
    draw = (args as { slab: { draws: { draw: number }[] } }).slab.draws[0]!.draw;
    lost.resolve();
    throw new WorkerLostError(
      "Cannot run 'generate' on sampler/0 because rank 0 failed: The process was killed by SIGKILL",
    );
  };
  // In flight when the other goes.
  const atWork: FakeHook = ({ op }) => op === "generate" ? lost.promise : undefined;
  const disturbed = await run([dies, atWork]);
  deepStrictEqual([disturbed.version, disturbed.failed.length], [undisturbed.version, 1]);
  deepStrictEqual(
    disturbed.generated,
    undisturbed.generated.map((n, i) => (i === draw ? n + 1 : n)),
  );
  deepStrictEqual(disturbed.loads[1], undisturbed.loads[1]);
});
