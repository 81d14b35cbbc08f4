/**
 * The shipped configurations of preference learning, and what a run of it survives, with real
 * workers.
 */
import { deepStrictEqual, match, ok, strictEqual } from "node:assert/strict";
import { at, rl, show, type Shown, withFreshHome } from "../crash/runs.ts";

/** Chosen before anything was tuned; tuning used others. */
const SEED = 7;
const PAIRS = 128;
/** Better than chance by more than four standard deviations of 128 coin flips. */
const ACCURACY_MIN = 0.7;

type Judged = {
  name: string;
  pairs: number;
  completions?: number;
  pair_accuracy: number;
  pair_margin: number;
};

async function run(
  home: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<string> {
  const { code, output } = await rl(["run", ...args, ...at({ home, store: null })], env);
  strictEqual(code, 0, output);
  return output;
}

function judged(shown: Shown): Judged[] {
  return shown.evaluations as unknown as Judged[];
}

Deno.test("DPO, KTO and a reward model tell right answers from wrong ones on pairs they never saw, and the reward model serves", async () => {
  await withFreshHome(async (home) => {
    for (const name of ["dpo", "kto", "reward_model"]) {
      const config = [`configs/algorithms/${name}.yaml`, `seed=${SEED}`, `model.seed=${SEED}`];
      const output = await run(home, [...config, "--id", name]);
      const shown = await show(home, name);
      const [before, after] = judged(shown);
      const { pairs, completions = 2 * pairs } = after!;
      deepStrictEqual([before!.name, after!.name, completions], ["before", "after", 2 * PAIRS]);
      strictEqual(
        before!.pair_accuracy,
        0,
        "nothing is preferred by a model that equals its reference, or by no score",
      );
      ok(
        after!.pair_accuracy >= ACCURACY_MIN,
        `${name}: ${after!.pair_accuracy} of the held-out pairs`,
      );
      ok(after!.pair_margin > 0);
      strictEqual(shown.metrics["eval/pair_accuracy"], after!.pair_accuracy);
      strictEqual(shown.ledger.read, 0);
      match(
        output,
        /evaluation after: 0\.\d+ right of (?:128 pairs|256 completions), margin \d/,
      );
    }
    const reward = `reward=[{name: reward_model, path: ${home}/runs/reward_model/final}]`;
    await run(home, [
      "configs/quickstart_small.yaml",
      reward,
      "evaluate.problems=4",
      "--id",
      "served",
    ]);
    const { ledger, metrics } = await show(home, "served");
    deepStrictEqual([ledger.pending, ledger.failed], [0, {}]);
    strictEqual(metrics["reward/reward_model/mean"], metrics["reward/mean"]);
    ok(metrics["reward/mean"] !== 0, "a score of a trained model is never exactly 0");
  });
});

const SHORT = [
  "rounds=6",
  "pairs_per_round=16",
  "evaluate.pairs=16",
  "checkpoints.every_rounds=3",
  "warmup.rounds=2",
  "warmup.rows_per_round=16",
  "trainer.micro_batch_tokens_max=128",
];
/**
 * The trainer in the middle of a step of the pairs; later the engine, with the trainer it started
 * anew.
 */
const FAULT = "kill:trainer@micro_batch:40,kill:engine@append:38";

for (const name of ["dpo", "kto"]) {
  Deno.test(`a ${name} run whose trainer and then engine are killed ends with the bits of a calm one, and verifies`, async () => {
    await withFreshHome(async (home) => {
      const short = [`configs/algorithms/${name}.yaml`, ...SHORT];
      await run(home, [...short, "--id", "calm"]);
      const place = at({ home, store: null });
      const killed = await rl(["run", ...short, "--id", "killed", ...place], {
        HOLDFAST_FAULT: FAULT,
      });
      strictEqual(killed.signal, "SIGKILL", killed.output);
      const resumed = await rl(["resume", "killed", ...place], {});
      strictEqual(resumed.code, 0, resumed.output);
      const [calm, other] = [await show(home, "calm"), await show(home, "killed")];
      deepStrictEqual([other.policy, judged(other)], [calm.policy, judged(calm)]);
      const causes = other.recoveries.map(({ cause }) => cause);
      ok(
        causes.includes("worker_lost") && causes.includes("engine_lost"),
        JSON.stringify(other.recoveries),
      );
      const verified = await rl(["verify", "killed", ...place], {});
      strictEqual(verified.code, 0, verified.output);
    });
  });
}
