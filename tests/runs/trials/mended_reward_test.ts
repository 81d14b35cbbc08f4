/** A run that failed of its reward, whose file is fixed before the resume. */
import { deepStrictEqual, match, strictEqual } from "node:assert/strict";
import type { EngineEvent } from "../../../engine/mod.ts";
import { online } from "../../../flows/online.ts";
import { FakeSampler } from "../../../testing/mod.ts";
import type { Operator } from "../../../workers/mod.ts";
import { execute, onlineConfig, scoredItem, stores } from "../../flows/fixtures.ts";

type ScoreArguments = { items: { id: string; completion: string }[] };

/** Reward processes whose function raises for the completions that `broken` names. */
function pool(broken: (completion: string) => boolean): Operator {
  const result = ({ id, completion }: ScoreArguments["items"][number]) =>
    broken(completion)
      ? scoredItem({ id, outcome: "error", error: "not written yet" })
      : scoredItem({ id, score: completion.length });
  return {
    call: (_, args) =>
      Promise.resolve({
        outputs: [{ results: (args as ScoreArguments).items.map(result) }],
        blobs: [],
        generation: 1,
      }),
  };
}

for (const algorithm of [{ name: "grpo", kl_coef: 0.1 }, { name: "dapo" }]) {
  for (
    const [what, broken] of [["every sample", () => true], [
      "some samples",
      (text: string) => text.length > 4,
    ]] as const
  ) {
    Deno.test(`${algorithm.name}: a reward that failed ${what} and was fixed scores them on resume; nothing is generated again`, async () => {
      const places = await stores();
      const config = onlineConfig(places.model, {
        algorithm,
        reward: [{ name: "python", source: "/nowhere/reward.py:good" }],
        rollouts: { slab_groups: 1, failed_fraction_max: 0 },
      });
      const generated = ({ calls }: FakeSampler) =>
        calls.filter(({ op }) => op === "generate").map(({ key }) => key);
      const first = new FakeSampler();
      const failed = await execute(online, config, {
        ...places,
        run: "run",
        pool: pool(broken),
        samplers: [first],
      });
      strictEqual(failed.outcome.status, "failed");
      match(JSON.stringify(failed.outcome), /not written yet/);
      const second = new FakeSampler();
      const resumed = await execute(online, config, {
        ...places,
        run: "run",
        pool: pool(() => false),
        samplers: [second],
      });
      strictEqual(resumed.outcome.status, "done", JSON.stringify(resumed.outcome));
      const fresh = await execute(online, config, {
        ...places,
        run: "fresh",
        pool: pool(() => false),
      });
      const [a, b] = [resumed.outcome, fresh.outcome] as unknown as {
        output: { policy: { version: string } };
      }[];
      strictEqual(a!.output.policy.version, b!.output.policy.version);
      const before = new Set(generated(first));
      deepStrictEqual([before.size > 0, generated(second).filter((key) => before.has(key))], [
        true,
        [],
      ]);
    });
  }
}

/**
 * What a run with evaluations ends with whose reward breaks at the start, or once this round has
 * closed, and is then fixed.
 */
async function fixed(overrides: Record<string, unknown>, after = 0) {
  const places = await stores();
  const config = onlineConfig(places.model, {
    data: { train: [{ path: "t" }], eval: [{ path: "e" }] },
    evaluate: { problems: 4 },
    reward: [{ name: "python", source: "/nowhere/reward.py:good" }],
    rollouts: { slab_groups: 1, failed_fraction_max: 0 },
    ...overrides,
  });
  let begun = after === 0;
  const onEvent = (event: EngineEvent) =>
    begun ||= event.type === "round_closed" && event.round === after;
  const failed = await execute(online, config, {
    ...places,
    pool: pool(() => begun),
    engine: { onEvent },
  });
  match(JSON.stringify(failed.outcome), /not written yet/);
  const calm = { ...places, pool: pool(() => false) };
  const resumed = await execute(online, config, calm);
  return [
    resumed.outcome,
    (await execute(online, config, { ...calm, run: "fresh" })).outcome,
  ] as const;
}

for (const [algorithm, after] of [["grpo", 0], ["dapo", 0], ["grpo", 1], ["grpo", 3]] as const) {
  Deno.test(`${algorithm} with evaluations: a reward that broke after round ${after} of 3 and was fixed ends as one that never did`, async () => {
    const [resumed, fresh] = await fixed({ algorithm: { name: algorithm } }, after);
    deepStrictEqual([resumed.status, resumed], ["done", fresh]);
  });
}
