import { deepStrictEqual, strictEqual } from "node:assert/strict";
import { processOf, RewardConfig, scoringFunctions } from "../../../rewards/mod.ts";
import { rewardRole, SamplerConfig, TrainerConfig, WorkersConfig } from "../../../workers/mod.ts";

const shared = { json: "{}" };

Deno.test("the reward operations take what the rewards' room declares", () => {
  const { score, score_by_model } = rewardRole.operations;
  const [mine, judge] = scoringFunctions([
    RewardConfig.parse({ name: "python", source: "my.py:f", env: ["HF_TOKEN"], cpu_s: null }),
    RewardConfig.parse({ name: "reward_model", path: "/rm" }),
  ]);
  const process = processOf({ env: ["HF_TOKEN"], cpu_s: null });
  const request = {
    function: "my.py:f",
    style: null,
    settings: null,
    process: mine!.process,
    timeout_ms: mine!.timeout_ms,
    shared,
  };
  const items = [{ id: "0", completion: "a", tokens: 1, token_ids: [7], stop: "stop" }];
  deepStrictEqual(score.args.parse({ ...request, items }), { ...request, process, items });
  strictEqual(
    score_by_model.args.safeParse({ model: judge!.model, shared, items }).success,
    true,
  );
  const short = items.map(({ token_ids: _, ...item }) => item);
  strictEqual(score.args.safeParse({ ...request, items: short }).success, false);
});

Deno.test("the reward worker starts with its first use, in the trainer's environment", () => {
  const blocks = {
    seed: 1,
    workers: WorkersConfig.parse({}),
    trainer: TrainerConfig.parse({ python: "/my/python" }),
    sampler: SamplerConfig.parse({}),
    reward_processes: 3,
    allow_replan: true,
  };
  const [{ group, spec, python, gpus }] = rewardRole.groups(blocks, undefined as never) as [
    ReturnType<typeof rewardRole.groups>[number],
  ];
  deepStrictEqual({ group, spec, python, gpus }, {
    group: "reward",
    spec: { processes: 3 },
    python: "/my/python",
    gpus: null,
  });
  strictEqual(rewardRole.starts, "on_first_use");
});
